#include "moxing/engine/session/internal/training/warm_start.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <vector>

#include "moxing/model/variables.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"
#include "runtime/base/nearest_name.h"

namespace mox::internal {
namespace {

std::vector<std::string> names_of(const std::vector<NamedArray>& variables) {
  std::vector<std::string> names;
  for (const NamedArray& variable : variables) names.push_back(variable.name);
  return names;
}

std::string section(const std::string& title, const std::vector<std::string>& names) {
  return fmt::format("# {}: {}\n{}{}", title, names.size(), fmt::join(names, "\n"),
                     names.empty() ? "" : "\n");
}

}  // namespace

std::vector<std::string> restored_variables(const StartingPoint& start, const VariableStore& store) {
  const std::vector<std::string> held = names_of(start.checkpoint.variables);
  const std::set<std::string> known(held.begin(), held.end());
  // Each text begins with the name and a space; a name may have spaces, too.
  std::set<std::string> anew;
  for (const std::string& text : store.other_shapes())
    for (size_t end = text.find(' '); end != std::string::npos; end = text.find(' ', end + 1))
      anew.insert(text.substr(0, end));
  std::vector<std::string> names = names_of(store.all());
  std::erase_if(names, [&](const std::string& name) { return !known.contains(name) || anew.contains(name); });
  return names;
}

void report_restored(const StartingPoint& start, const VariableStore& store, bool says,
                     const std::string& log_dir) {
  if (start.kind == StartingPoint::Kind::kInitial) return;
  const bool is_continued = start.kind == StartingPoint::Kind::kContinued;
  const std::vector<std::string> held = names_of(start.checkpoint.variables), model = names_of(store.all());
  const std::vector<std::string> unused = store.unclaimed(), taken = restored_variables(start, store);
  const std::vector<std::string>& anew = store.other_shapes();
  const std::set<std::string> known(held.begin(), held.end());
  std::vector<std::string> missing;
  std::ranges::copy_if(model, std::back_inserter(missing),
                       [&](const std::string& name) { return !known.contains(name); });
  if (taken.empty() && !is_continued)
    throw ConfigError(fmt::format(
        "the checkpoint '{}' and the model have no variable in common: the checkpoint has {} ({}), the model "
        "{} ({}). It is of another network: give checkpoint_path one of this network, or leave it out to "
        "begin with initial values",
        start.path, held.size(), first_names(held), model.size(), first_names(model)));
  if (!says || (missing.empty() && unused.empty() && anew.empty())) return;
  std::string line = fmt::format("{} of the model's {} variables are from the checkpoint '{}'", taken.size(),
                                 model.size(), start.path);
  if (!missing.empty())
    line += fmt::format("; {} begin with their initial values: {}", missing.size(), first_names(missing));
  if (!anew.empty())
    line += fmt::format("; {} begin anew, since their shapes differ: {}", anew.size(), first_names(anew));
  if (!start.left_out.empty())
    line += fmt::format("; {} of the checkpoint's were left out as asked", start.left_out.size());
  if (!unused.empty())
    line +=
        fmt::format("; {} of the checkpoint's are not in the model for training and {}: {}", unused.size(),
                    is_continued ? "are kept as they are" : "not used", first_names(unused));
  if (!log_dir.empty()) {
    const std::string path = log_dir + "/restored_variables.txt";
    write_file_atomically(path, section("taken from '" + start.path + "'", taken) +
                                    section("begun with initial values", missing) +
                                    section("begun anew, since their shapes differ", anew) +
                                    section("left out as asked", start.left_out) +
                                    section("of the checkpoint alone", unused));
    line += fmt::format(" (all names: '{}')", path);
  }
  log_warning(line);
}

void report_frozen(const NamePatterns& freeze, const Graph& graph, bool says) {
  if (freeze.empty()) return;
  std::vector<std::string> names, frozen;
  size_t trainable = 0;
  for (const Tensor& variable : graph.variables()) {
    const VariableSpec& spec = graph.spec(variable);
    names.push_back(spec.name);
    if (!spec.trainable) continue;
    ++trainable;
    if (freeze.match(spec.name)) frozen.push_back(spec.name);
  }
  freeze.require_used(names, "the model");
  if (says)
    log_info(fmt::format("freeze: {} of {} variables are not trained: {}", frozen.size(), trainable,
                         first_names(frozen)));
}

void warn_of_frozen_initial_values(const CompiledModel& model, const TrainingFacts& training,
                                   std::span<const std::string> restored) {
  const std::vector<std::string>& scopes = model.spec.var_scopes;
  const auto is_frozen = [&](const VariableSpec& variable) {
    const auto holds = [&](const std::string& scope) { return is_in_scope(variable.name, scope); };
    return (!scopes.empty() && std::ranges::none_of(scopes, holds)) ||
           training.is_frozen(variable.name, variable.type.shape);
  };
  std::vector<std::string> names;
  size_t trainable = 0;
  for (const Tensor& tensor : model.graph->variables()) {
    const VariableSpec& variable = model.graph->spec(tensor);
    if (!variable.trainable) continue;
    ++trainable;
    if (is_frozen(variable) && !std::ranges::binary_search(restored, variable.name))
      names.push_back(variable.name);
  }
  if (names.empty()) return;
  log_warning(fmt::format(
      "{} of {} trainable variables are frozen (freeze, var_scopes, a learning rate times 0) with their initial "
      "values, since the run starts from nothing that holds them: {}. To freeze what was learnt, say where it "
      "is (checkpoint_path, starting_variables), and see that it is not left out "
      "(checkpoint_exclude_patterns, on_shape_mismatch)",
      names.size(), trainable, first_names(names)));
}

}  // namespace mox::internal
