#include "moxing/engine/session/internal/evaluated_variables.h"

#include <fmt/format.h>

#include <map>
#include <string_view>
#include <unordered_set>

#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/nearest_name.h"

namespace mox::internal {
namespace {

using SpecsByName = std::map<std::string_view, const VariableSpec*>;

SpecsByName specs_of(const Graph& graph) {
  SpecsByName specs;
  for (const Tensor& variable : graph.variables()) {
    const VariableSpec& spec = graph.spec(variable);
    specs.emplace(spec.name, &spec);
  }
  return specs;
}

std::string with_place(const VariableSpec& spec) {
  return fmt::format("{} (made at {})", spec.name, to_string(spec.where));
}

}  // namespace

void warn_of_untrained_variables(const Graph& trained, const Graph& evaluated,
                                 const std::vector<std::string>& restored, bool says) {
  if (!says) return;
  const SpecsByName before = specs_of(trained);
  const std::unordered_set<std::string_view> taken(restored.begin(), restored.end());
  std::vector<std::string> alone, others;
  for (const auto& [name, spec] : specs_of(evaluated)) {
    const auto found = before.find(name);
    if (found == before.end()) {
      if (spec->trainable && !taken.contains(name)) alone.push_back(with_place(*spec));
    } else if (to_string(found->second->where) != to_string(spec->where) &&
               evaluated.is_in_counted_scope(name)) {
      others.push_back(fmt::format("{} (in training made at {}, in evaluation at {})", name,
                                   to_string(found->second->where), to_string(spec->where)));
    }
  }
  if (!alone.empty())
    log_warning(fmt::format(
        "the evaluation has trainable variables ({}) that the training has not, and measures their initial values: "
        "{}. Make the same layers in every mode, and give them names: those without one are counted in each mode "
        "by itself. (What a hook sets, or a constant, is not trainable)",
        alone.size(), first_names(alone)));
  if (!others.empty())
    log_warning(fmt::format(
        "the evaluation takes variables ({}) of another place in model_fn than the training: {}. Layers without "
        "a name are counted in each mode by itself: where one of them is made in training alone, those behind "
        "it take each other's variables. Give them names",
        others.size(), first_names(others)));
}

}  // namespace mox::internal
