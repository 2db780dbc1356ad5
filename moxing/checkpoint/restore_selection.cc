#include "moxing/checkpoint/restore_selection.h"

#include <fmt/format.h>

#include "runtime/base/error.h"

namespace mox::internal {

std::vector<std::string> select_variables(const RestoreSelection& selection, const std::string& path,
                                          std::vector<NamedArray>* variables) {
  const std::string whose = fmt::format("the checkpoint '{}'", path);
  std::vector<std::string> names;
  for (const NamedArray& variable : *variables) names.push_back(variable.name);
  names = selection.rename.apply(names, whose);
  selection.include.require_used(names, whose);
  selection.exclude.require_used(names, whose);
  std::vector<NamedArray> taken;
  std::vector<std::string> left_out;
  for (size_t i = 0; i < names.size(); ++i) {
    const bool is_taken = (selection.include.empty() || selection.include.match(names[i])) &&
                          !selection.exclude.match(names[i]);
    if (is_taken)
      taken.push_back({names[i], (*variables)[i].value});
    else
      left_out.push_back(names[i]);
  }
  if (taken.empty() && !names.empty())
    throw InvalidArgument(
        fmt::format("checkpoint_include_patterns and checkpoint_exclude_patterns leave nothing of the {} "
                    "variables of {}; to begin with initial values leave checkpoint_path out",
                    names.size(), whose));
  *variables = std::move(taken);
  return left_out;
}

}  // namespace mox::internal
