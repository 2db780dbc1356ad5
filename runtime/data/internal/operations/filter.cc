// filter: the elements for which a predicate holds. What remains has no positions: it is a stream.
#include "runtime/data/internal/evaluated_stream.h"
#include "runtime/data/internal/node.h"

namespace mox::data::internal {
namespace {

class FilterNode : public UnaryNode {
 public:
  FilterNode(NodePtr child, EvaluatedStream::Predicate predicate, SourceLocation where)
      : UnaryNode(std::move(child), where), predicate_(std::move(predicate)) {
    if (!predicate_) refuse("the predicate is empty");
  }

  std::string describe() const override { return "filter"; }
  int64_t find_cardinality() const override {
    return child()->cardinality() == Dataset::kInfinite ? Dataset::kInfinite : Dataset::kUnknown;
  }
  int64_t find_epoch_size() const override { return Dataset::kUnknown; }

  Compiled compile(CompileContext& context) const override {
    Compiled compiled = child()->compile(context);
    uint64_t patience = UINT64_MAX;
    if (child()->cardinality() == Dataset::kInfinite && child()->epoch_size() >= 0)
      patience = 1'000'000 + 10 * static_cast<uint64_t>(child()->epoch_size());
    auto evaluator = compiled.evaluator;
    const bool is_replaceable = evaluator->arity() == 1;
    return {.indexed = nullptr,
            .stream = std::make_unique<EvaluatedStream>(compiled.take_stream(), evaluator, predicate_,
                                                        label(), context.execution, patience, is_replaceable),
            .evaluator = std::make_shared<FilteredValueEvaluator>(element_type(), evaluator)};
  }

  // A function above may rely on the predicate, so it is tried on an element that passes.
  Element probe() const override {
    CompileContext context{.execution = std::make_shared<Execution>(), .without_caches = true};
    Compiled compiled = compile(context);
    compiled.stream->reset(0);
    Leaf leaf;
    if (!compiled.stream->next(&leaf)) return zero_element(signature());
    return compiled.evaluator->make(&leaf);
  }

 private:
  EvaluatedStream::Predicate predicate_;
};

}  // namespace

NodePtr make_filter(NodePtr child, std::function<bool(const Element&)> predicate, SourceLocation where) {
  return make_node<FilterNode>(std::move(child), std::move(predicate), where);
}

}  // namespace mox::data::internal
