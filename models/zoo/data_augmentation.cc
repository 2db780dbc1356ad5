#include "models/zoo/data_augmentation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

namespace mox {
namespace {

int in_proportion(int of_224, int size) {
  return std::max(size, static_cast<int>(std::lround(static_cast<double>(of_224) * size / 224)));
}

}  // namespace

image::Augmentation get_data_augmentation_fn(std::string_view model_name, ModeKeys run_mode, int height,
                                             int width) {
  const bool train = run_mode == ModeKeys::TRAIN;
  image::Augmentation recipe;
  recipe.height = height;
  recipe.width = width;
  const int smaller = std::min(height, width);
  if (model_name.starts_with("lenet")) {
    recipe.channels = 1;
  } else if (model_name.find("cifar") != std::string_view::npos || model_name == "resnet_v1_20" ||
             model_name == "resnet_v1_110") {
    recipe.mean = {0.4914f, 0.4822f, 0.4465f};
    recipe.stddev = {0.2470f, 0.2435f, 0.2616f};
    if (train) {
      recipe.crop = image::Crop::kPadded;
      recipe.padding = std::min(std::max(4, smaller / 8), std::max(0, smaller - 1));
      recipe.flip = true;
    }
  } else {
    const bool inception = model_name.starts_with("inception");
    recipe.mean = inception ? std::array{0.5f, 0.5f, 0.5f} : std::array{0.485f, 0.456f, 0.406f};
    recipe.stddev = inception ? std::array{0.5f, 0.5f, 0.5f} : std::array{0.229f, 0.224f, 0.225f};
    recipe.flip = train;
    recipe.resize_shorter = recipe.resize_shorter_max = in_proportion(256, smaller);
    if (!train) {
      recipe.crop = image::Crop::kCentre;
    } else if (model_name.starts_with("vgg") || model_name.starts_with("alexnet")) {
      recipe.crop = image::Crop::kRandom;
      recipe.resize_shorter_max = in_proportion(512, smaller);
    } else {
      recipe.crop = image::Crop::kRandomResized;
      if (inception)
        recipe.jitter = {.brightness = 32.0f / 255, .contrast = 0.5f, .saturation = 0.5f, .hue = 0.2f};
    }
  }
  image::validate(recipe, fmt::format("get_data_augmentation_fn('{}')", model_name));
  return recipe;
}

}  // namespace mox
