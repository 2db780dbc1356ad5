// The immutable description behind a Dataset handle: a tree of nodes, one kind of operation each. `compile`
// turns it into the two halves of a running pipeline: where elements come from (Indexed or Stream) and how
// they become data (ElementEvaluator).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/base/source_location.h"
#include "runtime/data/dataset.h"
#include "runtime/data/internal/element_evaluator.h"
#include "runtime/data/internal/execution.h"
#include "runtime/data/internal/indexed.h"
#include "runtime/data/internal/stream.h"

namespace mox::data::internal {

struct CompileContext {
  std::shared_ptr<Execution> execution;
  uint64_t stages = 0;
  bool one_order = false;  // a shuffle gives every pass of every pipeline the same order
  uint64_t part = 0;       // of a zip or an interleave, whose shuffles must not give all the same order

  // A number for each stage that draws random numbers or caches, in the order of the chain: operations
  // appended above, and those without randomness, do not change it.
  uint64_t new_stage() { return ++stages; }
  uint64_t stage_seed(uint64_t stage) const { return mix_hash(execution->seed, stage); }
};

struct Compiled {
  // One of the two is set.
  std::shared_ptr<const Indexed> indexed;
  std::unique_ptr<Stream> stream;
  std::shared_ptr<const ElementEvaluator> evaluator;

  std::unique_ptr<Stream> take_stream();  // the stream, or a walk over `indexed`
};

class Node;
using NodePtr = std::shared_ptr<const Node>;

class Node {
 public:
  explicit Node(SourceLocation where) : where_(where) {}
  virtual ~Node() = default;

  virtual std::vector<NodePtr> children() const = 0;
  virtual std::string describe() const = 0;  // this operation alone, with its arguments: "shuffle(60000)"
  virtual int64_t cardinality() const = 0;
  virtual int64_t epoch_size() const = 0;
  virtual bool rows_vary() const = 0;
  virtual Compiled compile(CompileContext& context) const = 0;

  // Whether a second pass gives the elements in another order, and the operation, if any, that selects by
  // position from an order that changes: what it keeps then differs from pass to pass.
  virtual bool order_changes() const;
  virtual const Node* selection_that_changes() const;

  // Whether the order of a pass is another with another seed (of a pipeline), so that parts of it are.
  virtual bool order_follows_seed() const;

  // The first element, or one of its type: what a map function is tried on to learn its result's type.
  virtual Element probe() const = 0;

  const std::vector<TensorType>& signature() const;  // computed once

  std::string label() const;  // "map (train.cc:12)", for messages

  // The whole tree, this node last: {"from_arrays(...)", "shuffle(60000)", "batch(100)"}. What a saved
  // position relies on.
  std::vector<std::string> stages() const;
  virtual void append_stages(std::vector<std::string>* stages) const;

  // What content_sample gives.
  virtual void append_contents(std::vector<std::string>* lines) const;

  // The random-access sources below, in the order of the operations; one that occurs twice comes twice.
  virtual void append_sources(std::vector<const RandomAccessSource*>* sources) const;

  // How many elements `prefetch` asks to keep ready, counted in this node's elements.
  virtual int64_t requested_prefetch() const;

 protected:
  virtual std::vector<TensorType> infer_signature() const = 0;
  [[noreturn]] void refuse(const std::string& text) const;  // InvalidArgument with the label before it

  ElementType element_type() const { return {signature(), rows_vary()}; }

 private:
  SourceLocation where_;
  mutable std::once_flag signature_once_;
  mutable std::vector<TensorType> signature_;
};

// An operation over one other data set that passes on what it does not change.
class UnaryNode : public Node {
 public:
  UnaryNode(NodePtr child, SourceLocation where) : Node(where), child_(std::move(child)) {}
  const NodePtr& child() const { return child_; }
  std::vector<NodePtr> children() const override { return {child_}; }
  int64_t cardinality() const override { return child_->cardinality(); }
  int64_t epoch_size() const override { return child_->epoch_size(); }
  bool rows_vary() const override { return child_->rows_vary(); }
  Element probe() const override { return child_->probe(); }

 protected:
  std::vector<TensorType> infer_signature() const override { return child_->signature(); }

 private:
  NodePtr child_;
};

using MapFunction = std::function<Element(const SampleContext&, const Element&)>;
using MapIntoFunction = std::function<void(const SampleContext&, const Element&, std::span<Array>)>;

NodePtr make_source(std::shared_ptr<const RandomAccessSource> source, SourceLocation where);
NodePtr make_arrays(std::vector<Array> arrays, SourceLocation where);
NodePtr make_generator(std::vector<TensorType> signature,
                       std::function<Generator(const PassContext&)> factory, int64_t size,
                       SourceLocation where);
NodePtr make_zip(std::vector<NodePtr> children, SourceLocation where);
NodePtr make_interleave(std::vector<NodePtr> inputs, int64_t cycle, int64_t block, SourceLocation where);
NodePtr make_map(NodePtr child, std::vector<TensorType> signature, bool infer, MapFunction function,
                 SourceLocation where);
NodePtr make_map_into(NodePtr child, std::vector<TensorType> signature, MapIntoFunction function,
                      SourceLocation where);
NodePtr make_filter(NodePtr child, std::function<bool(const Element&)> predicate, SourceLocation where);
NodePtr make_shuffle(NodePtr child, int64_t buffer_size, SourceLocation where);
// One order for all passes, a function of `seed` alone.
NodePtr make_shuffle_once(NodePtr child, int64_t buffer_size, uint64_t seed, SourceLocation where);
// The elements at `positions`, which ascend.
NodePtr make_select(NodePtr child, std::vector<uint64_t> positions, std::string description,
                    SourceLocation where);
NodePtr make_repeat(NodePtr child, int64_t count, SourceLocation where);
NodePtr make_batch(NodePtr child, int64_t size, bool drop_remainder, SourceLocation where);
NodePtr make_shard(NodePtr child, int64_t index, int64_t count, SourceLocation where);
NodePtr make_take(NodePtr child, int64_t count, SourceLocation where);
NodePtr make_skip(NodePtr child, int64_t count, SourceLocation where);
NodePtr make_cache(NodePtr child, SourceLocation where);
NodePtr make_prefetch(NodePtr child, int64_t count, SourceLocation where);

// A zero-filled element of these types.
Element zero_element(const std::vector<TensorType>& signature);

}  // namespace mox::data::internal
