// The names of recipes, as programs understood them that found a family anywhere in a name.
#pragma once

#include <string_view>

namespace mox {

// Which of the recipes of today (get_data_augmentation_fn) is the one that `name` had: to those programs,
// mobilenet_v2 was a LeNet. `name` itself where it means the same.
std::string_view recipe_of_older_run(std::string_view name);

// Kept with what a run has learnt; what lacks it was written by such a program.
inline constexpr const char* kRecipesMark = "recipes";
inline constexpr const char* kRecipesVersion = "2";

}  // namespace mox
