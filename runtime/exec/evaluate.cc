#include "runtime/exec/evaluate.h"

#include "runtime/base/error.h"
#include "runtime/exec/plan_instance.h"
#include "runtime/refusals/team_threads.h"

namespace mox {

std::vector<Array> evaluate(std::span<const Tensor> fetches, std::span<const Array> inputs,
                            const EvaluateOptions& options) {
  if (fetches.empty()) return {};
  if (!fetches[0].defined()) throw InvalidArgument("evaluate: a fetch is an undefined tensor");
  const Graph& graph = *fetches[0].node()->graph;
  const Team team(options.threads);
  const EnteredTeam entered(team);
  internal::start_team(team);
  const auto plan = Plan::compile(
      graph, {.fetches = {fetches.begin(), fetches.end()}, .gradients = {}, .after_step_values = {}},
      options.compile, team);
  PlanInstance instance(plan, team, [&](std::string_view name) {
    auto given = options.variables.find(name);
    if (given != options.variables.end()) return given->second;
    return graph.spec(graph.find_variable(name)).initial_value(options.seed);
  });
  instance.run({inputs, options.seed, options.step});
  std::vector<Array> results;
  for (size_t i = 0; i < fetches.size(); ++i) results.push_back(instance.fetched(i).clone());
  return results;
}

}  // namespace mox
