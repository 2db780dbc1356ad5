// Which part of an image a recipe takes: the random decisions about geometry.
#pragma once

#include "moxing/image/augmentation.h"

namespace mox::image::internal {

// Positions in a sample's random stream. Each decision has its own, so that switching one step on or off
// changes no other.
enum RandomPosition : uint64_t {
  kFlipPosition = 0,
  kCropXPosition,
  kCropYPosition,
  kShorterPosition,
  kCutOutXPosition,
  kCutOutYPosition,
  kJitterPosition = 16,
  kResizedCropPosition = 64,
};

// A resampling, and where its output lies in the sample (kPadded may leave a border around it).
struct CropPlan {
  Resampling resampling;
  int x = 0, y = 0;
};

CropPlan plan_crop(const Augmentation& augmentation, int width, int height, const RandomStream& random);

// The same for the image reduced by `denominator`: the same place, whose borders may now lie within pixels.
Resampling reduced(Resampling resampling, int denominator);

// By how much (1, 2, 4, 8) the image may be reduced with no side becoming smaller than what it is resized to.
int possible_reduction(const Resampling& resampling);

}  // namespace mox::image::internal
