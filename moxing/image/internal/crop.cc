#include "moxing/image/internal/crop.h"

#include <algorithm>
#include <cmath>

namespace mox::image::internal {
namespace {

int random_start(const RandomStream& random, uint64_t position, int room) {
  return random.below(position, static_cast<uint64_t>(room) + 1);
}

Region random_resized_region(const Augmentation& recipe, int width, int height, const RandomStream& random) {
  constexpr int kAttempts = 10;
  const double area = static_cast<double>(width) * height;
  const double low = std::log(recipe.min_proportion), high = std::log(recipe.max_proportion);
  for (uint64_t attempt = 0; attempt < kAttempts; ++attempt) {
    const uint64_t position = kResizedCropPosition + 4 * attempt;
    const double part =
        area * (recipe.min_area + (recipe.max_area - recipe.min_area) * random.uniform(position));
    const double proportion = std::exp(low + (high - low) * random.uniform(position + 1));
    const int box_width = static_cast<int>(std::lround(std::sqrt(part * proportion)));
    const int box_height = static_cast<int>(std::lround(std::sqrt(part / proportion)));
    if (box_width < 1 || box_height < 1 || box_width > width || box_height > height) continue;
    return Region::of({random_start(random, position + 2, width - box_width),
                       random_start(random, position + 3, height - box_height), box_width, box_height});
  }
  // The largest part in the middle whose proportions are allowed.
  const double proportion = static_cast<double>(width) / height;
  Box box{0, 0, width, height};
  if (proportion < recipe.min_proportion)
    box.height = std::clamp(static_cast<int>(std::lround(width / recipe.min_proportion)), 1, height);
  else if (proportion > recipe.max_proportion)
    box.width = std::clamp(static_cast<int>(std::lround(height * recipe.max_proportion)), 1, width);
  box.x = (width - box.width) / 2;
  box.y = (height - box.height) / 2;
  return Region::of(box);
}

// Resizes so that the shorter side has `shorter` pixels, or more where the output needs them.
void resize_shorter_side(Resampling* resampling, const Augmentation& recipe, int shorter) {
  const double width = resampling->source.width, height = resampling->source.height;
  const double scale =
      std::max({shorter / std::min(width, height), recipe.width / width, recipe.height / height});
  resampling->resized_width = std::max(recipe.width, static_cast<int>(std::lround(width * scale)));
  resampling->resized_height = std::max(recipe.height, static_cast<int>(std::lround(height * scale)));
}

// The part of the resized image that stays when `padding` pixels are put around it and it is cut at x, y.
void cut_padded(CropPlan* plan, const Augmentation& recipe, int x, int y) {
  const int left = std::max(0, x - recipe.padding), top = std::max(0, y - recipe.padding);
  const int right = std::min(recipe.width, x - recipe.padding + recipe.width);
  const int bottom = std::min(recipe.height, y - recipe.padding + recipe.height);
  plan->resampling.output = {left, top, right - left, bottom - top};
  plan->x = std::max(0, recipe.padding - x);
  plan->y = std::max(0, recipe.padding - y);
}

}  // namespace

CropPlan plan_crop(const Augmentation& recipe, int width, int height, const RandomStream& random) {
  CropPlan plan;
  Resampling& resampling = plan.resampling;
  resampling.source = Region::of({0, 0, width, height});
  resampling.resized_width = recipe.width;
  resampling.resized_height = recipe.height;
  resampling.output = {0, 0, recipe.width, recipe.height};
  resampling.filter = recipe.filter;
  switch (recipe.crop) {
    case Crop::kNone:
      break;
    case Crop::kCentre:
      resize_shorter_side(&resampling, recipe, recipe.resize_shorter);
      resampling.output.x = (resampling.resized_width - recipe.width) / 2;
      resampling.output.y = (resampling.resized_height - recipe.height) / 2;
      break;
    case Crop::kRandom:
      resize_shorter_side(
          &resampling, recipe,
          recipe.resize_shorter +
              random_start(random, kShorterPosition, recipe.resize_shorter_max - recipe.resize_shorter));
      resampling.output.x = random_start(random, kCropXPosition, resampling.resized_width - recipe.width);
      resampling.output.y = random_start(random, kCropYPosition, resampling.resized_height - recipe.height);
      break;
    case Crop::kRandomResized:
      resampling.source = random_resized_region(recipe, width, height, random);
      break;
    case Crop::kPadded:
      cut_padded(&plan, recipe, random_start(random, kCropXPosition, 2 * recipe.padding),
                 random_start(random, kCropYPosition, 2 * recipe.padding));
      break;
  }
  if (recipe.flip && random.bits(kFlipPosition) % 2 == 1) {
    resampling.flip = true;
    plan.x = recipe.width - plan.x - resampling.output.width;
  }
  return plan;
}

int possible_reduction(const Resampling& resampling) {
  for (int denominator : {8, 4, 2})
    if (resampling.source.width >= resampling.resized_width * denominator &&
        resampling.source.height >= resampling.resized_height * denominator)
      return denominator;
  return 1;
}

Resampling reduced(Resampling resampling, int denominator) {
  Region& source = resampling.source;
  source = {source.x / denominator, source.y / denominator, source.width / denominator,
            source.height / denominator};
  return resampling;
}

}  // namespace mox::image::internal
