// The immutable description behind a Dataset handle: a tree of nodes, one kind of operation each. `compile`
// turns it into the two halves of a running pipeline: where elements come from (Indexed or Stream) and how
// they become data (ElementEvaluator).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
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
  // Of a zip or an interleave, whose shuffles must not give all the same order: counted from the selection
  // that fixes their order, which is the same wherever that stands.
  uint64_t part = 0;
  // Caches keep nothing: of a look at the data before any pipeline has them, whose seeds have caches each.
  bool without_caches = false;

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
  // The deepest nesting of operations, where maps above one another count as one: `compile` and what it makes
  // call each other from level to level, so that it bounds their stacks.
  static constexpr int kMostLevels = 1000;

  explicit Node(SourceLocation where) : where_(where) {}
  virtual ~Node() = default;

  virtual std::span<const NodePtr> children() const = 0;
  virtual std::string describe() const = 0;  // this operation alone, with its arguments: "shuffle(60000)"
  virtual Compiled compile(CompileContext& context) const = 0;

  int64_t cardinality() const { return cardinality_; }
  int64_t epoch_size() const { return epoch_size_; }
  bool rows_vary() const { return rows_vary_; }

  // Whether a shuffle above a repeat draws from several passes at once: the first epoch_size() elements are
  // then no pass, but have some elements twice and others not at all.
  bool mixes_passes() const { return mixes_passes_; }

  // Whether a second pass gives the elements in another order, and the operation, if any, that selects by
  // position from an order that changes: what it keeps then differs from pass to pass.
  bool order_changes() const { return order_changes_; }
  const Node* selection_that_changes() const { return selection_that_changes_; }

  // Whether the order of a pass is another with another seed (of a pipeline), so that parts of it are.
  bool order_follows_seed() const { return order_follows_seed_; }

  // How many elements `prefetch` asks to keep ready, counted in this node's elements.
  int64_t requested_prefetch() const { return requested_prefetch_; }

  int levels() const { return levels_; }  // at most kMostLevels

  // The first element, or one of its type: what a map function is tried on to learn its result's type.
  virtual Element probe() const = 0;

  const std::vector<TensorType>& signature() const;  // computed once

  std::string label() const;  // "map (train.cc:12)", for messages

  // The whole tree, this node last: {"from_arrays(...)", "shuffle(60000)", "batch(100)"}. What a saved
  // position relies on.
  std::vector<std::string> stages() const;

  // What content_sample gives.
  std::vector<std::string> contents() const;

  // The random-access sources below, in the order of the operations; one that occurs twice comes twice.
  std::vector<const RandomAccessSource*> sources() const;

 protected:
  // What the functions above give, found out once from the children's and from those that stand before it in
  // this list, when the node is made (make_node): a chain of any length is asked without recursion.
  virtual int64_t find_cardinality() const = 0;
  virtual int64_t find_epoch_size() const = 0;
  virtual bool find_rows_vary() const = 0;
  virtual bool find_mixes_passes() const;
  virtual bool find_order_changes() const;
  virtual const Node* find_selection_that_changes() const;
  virtual bool find_order_follows_seed() const;
  virtual int64_t find_requested_prefetch() const;
  virtual int find_levels() const;

  virtual bool is_stage() const { return true; }      // false: no part of a position's meaning
  virtual bool fixes_order() const { return false; }  // of the shuffles below
  virtual const RandomAccessSource* source() const { return nullptr; }
  virtual void append_own_contents(std::vector<std::string>* /*lines*/) const {}

  virtual std::vector<TensorType> infer_signature() const = 0;
  void know_signature(std::vector<TensorType> signature) const;  // instead of inferring it

  [[noreturn]] void refuse(const std::string& text) const;  // InvalidArgument with the label before it

  ElementType element_type() const { return {signature(), rows_vary()}; }

 private:
  template <class Kind, class... Arguments>
  friend NodePtr make_node(Arguments&&... arguments);

  void settle();  // finds all out; refuses too many levels

  // The tree below and this node, each after its children, and whether it is in another than the first part
  // of a zip or an interleave.
  template <class Visit>
  void visit_tree(const Visit& visit) const;

  SourceLocation where_;
  int64_t cardinality_ = 0, epoch_size_ = 0, requested_prefetch_ = 0;
  int levels_ = 1;
  bool rows_vary_ = false, mixes_passes_ = false, order_changes_ = false, order_follows_seed_ = false;
  const Node* selection_that_changes_ = nullptr;
  mutable std::once_flag signature_once_;
  mutable std::vector<TensorType> signature_;
};

// How every node is made.
template <class Kind, class... Arguments>
NodePtr make_node(Arguments&&... arguments) {
  const std::shared_ptr<Node> node = std::make_shared<Kind>(std::forward<Arguments>(arguments)...);
  node->settle();
  return node;
}

// An operation over one other data set that passes on what it does not change.
class UnaryNode : public Node {
 public:
  UnaryNode(NodePtr child, SourceLocation where) : Node(where), child_(std::move(child)) {}
  ~UnaryNode() override;  // of a chain of any length, one node after the other

  const NodePtr& child() const { return child_; }
  std::span<const NodePtr> children() const override { return {&child_, 1}; }
  Element probe() const override { return child_->probe(); }

 protected:
  int64_t find_cardinality() const override { return child_->cardinality(); }
  int64_t find_epoch_size() const override { return child_->epoch_size(); }
  bool find_rows_vary() const override { return child_->rows_vary(); }
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
// Without `types`, those of what the function makes of the first element.
NodePtr make_map(NodePtr child, std::optional<std::vector<TensorType>> types, MapFunction function,
                 SourceLocation where);
NodePtr make_map_into(NodePtr child, std::vector<TensorType> types, MapIntoFunction function,
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
