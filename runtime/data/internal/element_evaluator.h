// Turns leaves into data: the parallel half of a pipeline. Evaluators are immutable and are called from
// several threads.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "runtime/data/internal/execution.h"
#include "runtime/data/internal/leaf.h"
#include "runtime/tensor/array.h"

namespace mox::data::internal {

// The type of an evaluator's elements.
struct ElementType {
  std::vector<TensorType> components;
  bool rows_vary = false;  // batches of which the last may have fewer rows than `components` say
};

size_t bytes_of(const ElementType& type);

class ElementEvaluator {
 public:
  ElementEvaluator(ElementType type, int arity) : type_(std::move(type)), arity_(arity) {}
  virtual ~ElementEvaluator() = default;

  const ElementType& type() const { return type_; }
  int arity() const { return arity_; }  // leaves of an element

  // The element as arrays, perhaps sharing memory with the data set.
  virtual Element make(const Leaf* leaves) const = 0;

  // The element's bytes to destinations[component]. Throws InvalidArgument if the element has fewer rows than
  // its type.
  virtual void write(const Leaf* leaves, std::span<std::byte* const> destinations) const;

  // The pass that the element's first sample belongs to.
  virtual uint64_t pass_of(const Leaf* leaves) const { return leaves->epoch; }

  // What the leaves of an element hold of memory, and whether `make` gives the same.
  struct Carried {
    size_t bytes = 0;
    bool is_given = false;
  };
  virtual Carried carried() const { return {}; }

  // Appends the names of the element's samples, "" for one without. Where it is not known how many these are,
  // as of batches that come from a source, that is another number than its rows.
  virtual void append_names(const Leaf* leaves, std::vector<std::string>* names) const = 0;

  // A hint that these leaves are evaluated soon.
  virtual void will_read(const Leaf* /*leaves*/) const {}

  // If `count` elements (their leaves `stride` apart) lie side by side in memory: appends arrays over them
  // with a leading axis of `count` and returns true.
  virtual bool view(const Leaf* /*leaves*/, size_t /*stride*/, size_t /*count*/, Element* /*rows*/) const {
    return false;
  }

  // Whether `view` can ever succeed: its result is then worth asking for, and costs next to nothing.
  virtual bool has_views() const { return false; }

 private:
  ElementType type_;
  int arity_;
};

// Leaves that carry their value.
class ValueEvaluator : public ElementEvaluator {
 public:
  explicit ValueEvaluator(ElementType type) : ElementEvaluator(std::move(type), 1) {}
  Element make(const Leaf* leaves) const override { return leaves[0].payload->value; }
  Carried carried() const override { return {bytes_of(type()), true}; }
  void append_names(const Leaf* leaves, std::vector<std::string>* names) const override {
    const auto& known = leaves[0].payload->names;
    if (known.empty())
      names->emplace_back();
    else
      names->insert(names->end(), known.begin(), known.end());
  }
};

// Leaves that carry their value, or stand for what another evaluator makes of them (Payload::is_replaceable).
class FilteredValueEvaluator : public ElementEvaluator {
 public:
  // `source` has an arity of 1 where leaves come without their value.
  FilteredValueEvaluator(ElementType type, std::shared_ptr<const ElementEvaluator> source)
      : ElementEvaluator(type, 1), held_(std::move(type)), source_(std::move(source)) {}
  Element make(const Leaf* leaves) const override { return of(leaves).make(leaves); }
  Carried carried() const override { return held_.carried(); }
  void write(const Leaf* leaves, std::span<std::byte* const> destinations) const override {
    of(leaves).write(leaves, destinations);
  }
  void append_names(const Leaf* leaves, std::vector<std::string>* names) const override {
    of(leaves).append_names(leaves, names);
  }
  uint64_t pass_of(const Leaf* leaves) const override {
    return leaves[0].payload ? leaves[0].payload->pass : source_->pass_of(leaves);
  }
  void will_read(const Leaf* leaves) const override { of(leaves).will_read(leaves); }

 private:
  const ElementEvaluator& of(const Leaf* leaves) const {
    if (leaves[0].payload) return held_;
    return *source_;
  }

  ValueEvaluator held_;
  std::shared_ptr<const ElementEvaluator> source_;
};

// Throws InvalidArgument unless `element` has the type, saying who (`producer`) gave what and where
// it should differ.
void check_element(const ElementType& type, const Element& element, const std::string& producer);

// `type` with a first axis of `rows` before (stacked) or instead of (with_rows) its own.
TensorType stacked(const TensorType& type, int64_t rows);
TensorType with_rows(const TensorType& type, int64_t rows);

std::string types_text(const std::vector<TensorType>& signature);  // "{float32[784], int32[]}"

}  // namespace mox::data::internal
