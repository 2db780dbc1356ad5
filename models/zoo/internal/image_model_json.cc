#include "models/zoo/internal/image_model_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/zoo/older_recipes.h"
#include "moxing/json/bounded_json.h"
#include "moxing/json/parse_json.h"
#include "runtime/base/error.h"

namespace mox::internal {
namespace {

constexpr size_t kMostTimes = 12;
constexpr int64_t kLargestImage = 1 << 16;  // height and width

// 0 for data that says itself how large its images are. A number with a fraction, or one that is too large,
// would become another one without a word.
int64_t size_in(const nlohmann::json& json) {
  const int64_t size = json.is_number_integer() ? json.get<int64_t>() : -1;
  if (size < 0 || size > kLargestImage)
    throw DataError(fmt::format("its image_size is {}, and must be a whole number in 0...{}", json.dump(),
                                kLargestImage));
  return size;
}

std::string recipe_in(const nlohmann::json& json) {
  const std::string recipe = json.at("recipe");
  return json.contains(kRecipesMark) ? recipe : std::string(recipe_of_older_run(recipe));
}

}  // namespace

std::string json_of_model(const ImageModel& model) {
  const nlohmann::ordered_json json = {{"network", model.network},
                                       {"image_size", model.image_size},
                                       {"recipe", model.recipe},
                                       {kRecipesMark, kRecipesVersion},
                                       {"fast_decode", model.fast_decode},
                                       {"many_labels", model.many_labels},
                                       {"array_format", model.array_format},
                                       {"precision", model.precision},
                                       {"conv_algorithm", model.conv_algorithm},
                                       {"conv_error", model.conv_error},
                                       {"label_names", model.label_names}};
  return json.dump(2) + '\n';
}

ImageModel model_of_json(const std::string& text, const std::string& path) {
  require_bounded_json(text, path, kMostTimes);
  try {
    const auto json = parse_json(text, path);
    const ImageModel usual;  // of files that older programs wrote
    return {.network = json.at("network"),
            .image_size = size_in(json.at("image_size")),
            .recipe = recipe_in(json),
            .fast_decode = json.at("fast_decode"),
            .many_labels = json.at("many_labels"),
            .array_format = json.value("array_format", std::string(kUnsaidFormat)),
            .precision = json.at("precision"),
            .conv_algorithm = json.value("conv_algorithm", usual.conv_algorithm),
            .conv_error = json.value("conv_error", usual.conv_error),
            .label_names = json.at("label_names")};
  } catch (const std::exception& error) {
    throw DataError(fmt::format("'{}' is not what image_classifier writes: {}", path, error.what()));
  }
}

}  // namespace mox::internal
