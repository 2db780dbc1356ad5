// What a training takes from the checkpoint that it starts from (checkpoint_path).
#pragma once

#include <string>
#include <vector>

#include "moxing/checkpoint/name_patterns.h"
#include "moxing/checkpoint/named_array.h"

namespace mox::internal {

// Variables get their new names first; patterns are over those, which are the model's.
struct RestoreSelection {
  NameReplacements rename = {};           // checkpoint_rename
  NamePatterns include = {};              // checkpoint_include_patterns; empty: all
  NamePatterns exclude = {};              // checkpoint_exclude_patterns
  bool initialises_other_shapes = false;  // on_shape_mismatch: initialise
};

// Gives `variables` their new names and moves those that are not taken out of it; returns their names. Throws
// InvalidArgument for a pattern or a pair that does nothing, for two variables that become one, and if
// nothing is left. `path` names the checkpoint in messages.
std::vector<std::string> select_variables(const RestoreSelection& selection, const std::string& path,
                                          std::vector<NamedArray>* variables);

}  // namespace mox::internal
