#include "models/zoo/older_recipes.h"

namespace mox {

std::string_view recipe_of_older_run(std::string_view name) {
  const auto has = [&](std::string_view family) { return name.find(family) != std::string_view::npos; };
  if (!has("lenet") && has("cifar")) return name;  // anywhere, to this day
  for (const std::string_view family : {"lenet", "inception", "vgg", "alexnet"})
    if (has(family)) return name.starts_with(family) ? name : family;
  return name;
}

}  // namespace mox
