// map and map_into: the same positions, other data. Maps that stand above one another become one evaluator,
// which calls their functions in turn: a chain of any length needs no more stack than one.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "runtime/base/error.h"
#include "runtime/data/internal/node.h"
#include "runtime/data/internal/sample_error.h"

namespace mox::data::internal {
namespace {

// One of the two is set.
struct Function {
  MapFunction map;
  MapIntoFunction map_into;
};

struct Step {
  ElementType type;  // of the result
  Function function;
  std::string label;
  uint64_t seed;
};

class MapEvaluator : public ElementEvaluator {
 public:
  MapEvaluator(std::shared_ptr<const ElementEvaluator> child, std::vector<Step> steps,
               std::shared_ptr<Execution> execution)
      : ElementEvaluator(steps.back().type, child->arity()),
        child_(std::move(child)),
        steps_(std::move(steps)),
        execution_(std::move(execution)) {}

  Element make(const Leaf* leaves) const override { return after(steps_, leaves); }
  Carried carried() const override { return {child_->carried().bytes, false}; }

  void write(const Leaf* leaves, std::span<std::byte* const> destinations) const override {
    const Step& last = steps_.back();
    if (!last.function.map_into || type().rows_vary) return ElementEvaluator::write(leaves, destinations);
    const Element input = after(std::span(steps_).first(steps_.size() - 1), leaves);
    Element outputs;
    for (size_t c = 0; c < destinations.size(); ++c)
      outputs.emplace_back(type().components[c],
                           std::shared_ptr<std::byte>(std::shared_ptr<std::byte>(), destinations[c]));
    call_into(last, leaves, input, outputs);
  }

  uint64_t pass_of(const Leaf* leaves) const override { return child_->pass_of(leaves); }
  void append_names(const Leaf* leaves, std::vector<std::string>* names) const override {
    child_->append_names(leaves, names);
  }
  void will_read(const Leaf* leaves) const override { child_->will_read(leaves); }

 private:
  Element after(std::span<const Step> steps, const Leaf* leaves) const {
    Element element = child_->make(leaves);
    for (const Step& step : steps) element = result(step, leaves, element);
    return element;
  }

  Element result(const Step& step, const Leaf* leaves, const Element& input) const {
    if (step.function.map_into) {
      Element outputs;
      for (const auto& component : step.type.components) {
        const TensorType actual = step.type.rows_vary ? with_rows(component, input[0].shape()[0]) : component;
        outputs.emplace_back(actual, execution_->pool.take(actual.bytes()));
      }
      call_into(step, leaves, input, outputs);
      return outputs;
    }
    try {
      Element result = step.function.map(context_of(step, leaves), input);
      check_element(step.type, result, "the function");
      return result;
    } catch (...) {
      rethrow_with_sample(step.label, *leaves);
    }
  }

  static void call_into(const Step& step, const Leaf* leaves, const Element& input,
                        std::span<Array> outputs) {
    try {
      step.function.map_into(context_of(step, leaves), input, outputs);
    } catch (...) {
      rethrow_with_sample(step.label, *leaves);
    }
  }

  static SampleContext context_of(const Step& step, const Leaf* leaves) {
    return {step.seed, leaves->epoch, leaves->index};
  }

  std::shared_ptr<const ElementEvaluator> child_;
  std::vector<Step> steps_;
  std::shared_ptr<Execution> execution_;
};

class MapNode : public UnaryNode {
 public:
  // Without `types` they are inferred, which only `map` can do.
  MapNode(NodePtr child, std::optional<std::vector<TensorType>> types, Function function,
          SourceLocation where)
      : UnaryNode(std::move(child), where), types_(std::move(types)), function_(std::move(function)) {
    if (!function_.map && !function_.map_into) refuse("the function is empty");
    if (!types_) return;
    if (types_->empty()) refuse("the signature has no components");
    for (const TensorType& type : *types_)
      if (function_.map_into && this->child()->rows_vary() && type.shape.rank() == 0)
        refuse(
            "a component of the signature has no batch axis, but the input's last batch may have fewer rows");
  }

  std::string describe() const override {
    return function_.map_into ? fmt::format("map_into({})", types_text(*types_)) : "map";
  }

  Compiled compile(CompileContext& context) const override {
    std::vector<const MapNode*> chain = maps_down_to([](const MapNode&) { return false; });
    for (const MapNode* map : chain) map->signature();  // the uppermost first: it tells those below theirs
    std::ranges::reverse(chain);
    Compiled compiled = chain.front()->child()->compile(context);
    std::vector<Step> steps;
    for (const MapNode* map : chain)
      steps.push_back(
          {map->element_type(), map->function_, map->label(), context.stage_seed(context.new_stage())});
    compiled.evaluator =
        std::make_shared<MapEvaluator>(compiled.evaluator, std::move(steps), context.execution);
    return compiled;
  }

  // A small element is kept: each map of a long chain asks for that of the one below.
  Element probe() const override {
    Element element;
    std::vector<const MapNode*> chain = maps_down_to([&](const MapNode& map) {
      const std::lock_guard lock(map.probing_);
      element = map.probed_;
      return !element.empty();
    });
    if (element.empty()) element = chain.back()->child()->probe();
    for (; !chain.empty(); chain.pop_back()) {
      const MapNode& map = *chain.back();
      element = map.tried_on(element);
      if (&map != this && !map.types_) map.know_signature(map.types_of(element));
      map.keep(element);
    }
    return element;
  }

 protected:
  std::vector<TensorType> infer_signature() const override { return types_ ? *types_ : types_of(probe()); }

  int find_levels() const override { return map_below() ? child()->levels() : UnaryNode::find_levels(); }

 private:
  const MapNode* map_below() const { return dynamic_cast<const MapNode*>(child().get()); }

  // This map and those below it, as long as there is nothing else between them and until one is `reached`.
  std::vector<const MapNode*> maps_down_to(const std::function<bool(const MapNode&)>& reached) const {
    std::vector<const MapNode*> chain;
    for (const MapNode* map = this; map && !reached(*map); map = map->map_below()) chain.push_back(map);
    return chain;
  }

  Element tried_on(const Element& input) const {
    try {
      if (function_.map) return function_.map(SampleContext{}, input);
      Element outputs = zero_element(*types_);
      function_.map_into(SampleContext{}, input, outputs);
      return outputs;
    } catch (...) {
      rethrow_with_sample(label() + ", tried to learn its result's type", Leaf{});
    }
  }

  std::vector<TensorType> types_of(const Element& element) const {
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

  void keep(const Element& element) const {
    constexpr size_t kMostKept = size_t{16} << 10;
    size_t bytes = 0;
    for (const Array& array : element) bytes += array.defined() ? array.bytes() : 0;
    if (bytes > kMostKept) return;
    const std::lock_guard lock(probing_);
    probed_ = element;
  }

  std::optional<std::vector<TensorType>> types_;
  Function function_;
  mutable std::mutex probing_;
  mutable Element probed_;
};

}  // namespace

NodePtr make_map(NodePtr child, std::optional<std::vector<TensorType>> types, MapFunction function,
                 SourceLocation where) {
  return make_node<MapNode>(std::move(child), std::move(types),
                            Function{.map = std::move(function), .map_into = nullptr}, where);
}

NodePtr make_map_into(NodePtr child, std::vector<TensorType> types, MapIntoFunction function,
                      SourceLocation where) {
  return make_node<MapNode>(std::move(child), std::move(types),
                            Function{.map = nullptr, .map_into = std::move(function)}, where);
}

}  // namespace mox::data::internal
