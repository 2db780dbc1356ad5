#include "moxing/model/training_facts.h"

#include <utility>

#include "runtime/graph/graph.h"

namespace mox::internal {

TrainingFactsScope*& TrainingFactsScope::innermost() {
  thread_local TrainingFactsScope* scope = nullptr;
  return scope;
}

TrainingFactsScope::TrainingFactsScope(TrainingFacts facts)
    : facts_(std::move(facts)), previous_(std::exchange(innermost(), this)) {}
TrainingFactsScope::~TrainingFactsScope() { innermost() = previous_; }

const TrainingFacts& training_facts() {
  static const TrainingFacts nothing_is_known;
  const TrainingFactsScope* scope = TrainingFactsScope::innermost();
  return scope ? scope->facts_ : nothing_is_known;
}

bool is_frozen(const Tensor& variable) {
  TrainingFactsScope* scope = TrainingFactsScope::innermost();
  if (!scope || variable.node()->op->kind != Op::Kind::kVariable) return false;
  scope->asked_.push_back(variable);
  return scope->facts_.is_frozen &&
         scope->facts_.is_frozen(current_graph("is_frozen").spec(variable).name, variable.shape());
}

}  // namespace mox::internal
