// map and map_into: the same positions, other data.
#include <fmt/format.h>

#include <cstring>
#include <mutex>

#include "runtime/base/error.h"
#include "runtime/data/internal/node.h"
#include "runtime/data/internal/sample_error.h"

namespace mox::data::internal {
namespace {

SampleContext context_of(const Leaf& leaf, uint64_t seed) { return {seed, leaf.epoch, leaf.index}; }

class MapEvaluator : public ElementEvaluator {
 public:
  MapEvaluator(ElementType type, std::shared_ptr<const ElementEvaluator> child, MapFunction function,
               std::string label, uint64_t seed)
      : ElementEvaluator(std::move(type), child->arity()),
        child_(std::move(child)),
        function_(std::move(function)),
        label_(std::move(label)),
        seed_(seed) {}

  Element make(const Leaf* leaves) const override {
    const Element input = child_->make(leaves);
    try {
      Element result = function_(context_of(*leaves, seed_), input);
      check_element(type(), result, "the function");
      return result;
    } catch (...) {
      rethrow_with_sample(label_, *leaves);
    }
  }

  uint64_t pass_of(const Leaf* leaves) const override { return child_->pass_of(leaves); }
  void append_names(const Leaf* leaves, std::vector<std::string>* names) const override {
    child_->append_names(leaves, names);
  }
  void will_read(const Leaf* leaves) const override { child_->will_read(leaves); }

 private:
  std::shared_ptr<const ElementEvaluator> child_;
  MapFunction function_;
  std::string label_;
  uint64_t seed_;
};

class MapIntoEvaluator : public ElementEvaluator {
 public:
  MapIntoEvaluator(ElementType type, std::shared_ptr<const ElementEvaluator> child, MapIntoFunction function,
                   std::string label, std::shared_ptr<Execution> execution, uint64_t seed)
      : ElementEvaluator(std::move(type), child->arity()),
        child_(std::move(child)),
        function_(std::move(function)),
        label_(std::move(label)),
        execution_(std::move(execution)),
        seed_(seed) {}

  Element make(const Leaf* leaves) const override {
    const Element input = child_->make(leaves);
    Element outputs;
    for (const auto& component : type().components) {
      const TensorType actual = type().rows_vary ? with_rows(component, input[0].shape()[0]) : component;
      outputs.emplace_back(actual, execution_->pool.take(actual.bytes()));
    }
    call(leaves, input, outputs);
    return outputs;
  }

  void write(const Leaf* leaves, std::span<std::byte* const> destinations) const override {
    if (type().rows_vary) return ElementEvaluator::write(leaves, destinations);
    const Element input = child_->make(leaves);
    Element outputs;
    for (size_t c = 0; c < destinations.size(); ++c)
      outputs.emplace_back(type().components[c],
                           std::shared_ptr<std::byte>(std::shared_ptr<std::byte>(), destinations[c]));
    call(leaves, input, outputs);
  }

  uint64_t pass_of(const Leaf* leaves) const override { return child_->pass_of(leaves); }
  void append_names(const Leaf* leaves, std::vector<std::string>* names) const override {
    child_->append_names(leaves, names);
  }
  void will_read(const Leaf* leaves) const override { child_->will_read(leaves); }

 private:
  void call(const Leaf* leaves, const Element& input, std::span<Array> outputs) const {
    try {
      function_(context_of(*leaves, seed_), input, outputs);
    } catch (...) {
      rethrow_with_sample(label_, *leaves);
    }
  }

  std::shared_ptr<const ElementEvaluator> child_;
  MapIntoFunction function_;
  std::string label_;
  std::shared_ptr<Execution> execution_;
  uint64_t seed_;
};

class MapNode : public UnaryNode {
 public:
  MapNode(NodePtr child, std::vector<TensorType> signature, bool infer, MapFunction function,
          SourceLocation where)
      : UnaryNode(std::move(child), where),
        types_(std::move(signature)),
        infer_(infer),
        function_(std::move(function)) {
    if (!function_) refuse("the function is empty");
    if (!infer_ && types_.empty()) refuse("the signature has no components");
  }

  std::string describe() const override { return "map"; }

  Compiled compile(CompileContext& context) const override {
    Compiled compiled = child()->compile(context);
    const uint64_t seed = context.stage_seed(context.new_stage());
    compiled.evaluator =
        std::make_shared<MapEvaluator>(element_type(), compiled.evaluator, function_, label(), seed);
    return compiled;
  }

  // A small element is kept: each map of a long chain asks for that of the one below.
  Element probe() const override {
    const std::lock_guard lock(probing_);
    if (!probed_.empty()) return probed_;
    constexpr size_t kMostKept = size_t{16} << 10;
    Element element = probe_anew();
    size_t bytes = 0;
    for (const Array& array : element) bytes += array.defined() ? array.bytes() : 0;
    if (bytes <= kMostKept) probed_ = element;
    return element;
  }

 protected:
  std::vector<TensorType> infer_signature() const override {
    if (!infer_) return types_;
    const Element element = probe();
    std::vector<TensorType> types;
    for (size_t c = 0; c < element.size(); ++c) {
      if (!element[c].defined()) refuse(fmt::format("component {} of the function's result is undefined", c));
      TensorType type = element[c].type();
      if (rows_vary() && type.shape.rank() == 0)
        refuse(fmt::format("component {} of the function's result lost the batch axis", c));
      types.push_back(std::move(type));
    }
    if (types.empty()) refuse("the function's result has no components");
    return types;
  }

 private:
  Element probe_anew() const {
    try {
      return function_(SampleContext{}, child()->probe());
    } catch (...) {
      rethrow_with_sample(label() + ", tried to learn its result's type", Leaf{});
    }
  }

  std::vector<TensorType> types_;
  bool infer_;
  MapFunction function_;
  mutable std::mutex probing_;
  mutable Element probed_;
};

class MapIntoNode : public UnaryNode {
 public:
  MapIntoNode(NodePtr child, std::vector<TensorType> signature, MapIntoFunction function,
              SourceLocation where)
      : UnaryNode(std::move(child), where), types_(std::move(signature)), function_(std::move(function)) {
    if (!function_) refuse("the function is empty");
    if (types_.empty()) refuse("the signature has no components");
    for (const auto& type : types_)
      if (rows_vary() && type.shape.rank() == 0)
        refuse(
            "a component of the signature has no batch axis, but the input's last batch may have fewer rows");
  }

  std::string describe() const override { return fmt::format("map_into({})", types_text(types_)); }

  Compiled compile(CompileContext& context) const override {
    Compiled compiled = child()->compile(context);
    const uint64_t seed = context.stage_seed(context.new_stage());
    compiled.evaluator = std::make_shared<MapIntoEvaluator>(element_type(), compiled.evaluator, function_,
                                                            label(), context.execution, seed);
    return compiled;
  }

  Element probe() const override {
    Element outputs = zero_element(types_);
    function_(SampleContext{}, child()->probe(), outputs);
    return outputs;
  }

 protected:
  std::vector<TensorType> infer_signature() const override { return types_; }

 private:
  std::vector<TensorType> types_;
  MapIntoFunction function_;
};

}  // namespace

NodePtr make_map(NodePtr child, std::vector<TensorType> signature, bool infer, MapFunction function,
                 SourceLocation where) {
  return std::make_shared<MapNode>(std::move(child), std::move(signature), infer, std::move(function), where);
}

NodePtr make_map_into(NodePtr child, std::vector<TensorType> signature, MapIntoFunction function,
                      SourceLocation where) {
  return std::make_shared<MapIntoNode>(std::move(child), std::move(signature), std::move(function), where);
}

}  // namespace mox::data::internal
