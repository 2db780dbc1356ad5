// Samples of bfloat16 are those of float32, rounded, whatever the recipe.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "moxing/image/augmentation.h"
#include "runtime/base/error.h"
#include "runtime/base/random.h"
#include "tests/moxing/image/images.h"
#include "tests/support/temporary_directory.h"

namespace mox::image {
namespace {

constexpr float kBeside = -7.0f;  // around a sample; must stay

// Random numbers, one after another.
class Choices {
 public:
  explicit Choices(uint64_t seed) : random_(seed, 0) {}
  int between(int low, int high) {
    return low + static_cast<int>(random_.below(position_++, static_cast<uint64_t>(high - low) + 1));
  }
  bool coin() { return between(0, 1) == 1; }
  float unit() { return static_cast<float>(random_.uniform(position_++)); }

 private:
  RandomStream random_;
  uint64_t position_ = 0;
};

Augmentation random_recipe(Choices& choose) {
  Augmentation recipe{.height = choose.between(1, 70),
                      .width = choose.between(1, 150),
                      .channels = choose.coin() ? 3 : 1,
                      .crop = static_cast<Crop>(choose.between(0, 4)),
                      .flip = choose.coin(),
                      .filter = choose.coin() ? Filter::kBilinear : Filter::kArea,
                      .fast_decode = choose.coin()};
  recipe.resize_shorter = std::max(recipe.height, recipe.width) + choose.between(0, 9);
  recipe.resize_shorter_max = recipe.resize_shorter + choose.between(0, 9);
  recipe.padding = choose.between(0, std::min({recipe.height, recipe.width, 9}) - 1);
  if (recipe.channels == 3 && choose.between(0, 2) == 0)
    recipe.jitter = {.brightness = 0.4f, .contrast = 0.3f, .saturation = 0.2f, .hue = 0.1f};
  if (choose.between(0, 2) == 0) recipe.cut_out = choose.between(1, 20);
  for (size_t c = 0; c < 3; ++c) {
    recipe.mean[c] = choose.unit();
    recipe.stddev[c] = 0.1f + choose.unit();
  }
  return recipe;
}

// Reads a sample of either dtype into the middle of memory of its own, `shift` numbers behind a boundary of
// 64 bytes.
template <typename Value, typename Source>
std::vector<Value> sample_in_memory(ImageReader& reader, const Augmentation& recipe,
                                    const SampleContext& context, size_t shift, const Source& source) {
  constexpr size_t kBoundary = 64 / sizeof(Value);
  const auto values = static_cast<size_t>(recipe.channels) * recipe.height * recipe.width;
  std::vector<Value> memory(values + shift + 2 * kBoundary, static_cast<Value>(kBeside));
  const size_t past = reinterpret_cast<uintptr_t>(memory.data()) / sizeof(Value) % kBoundary;
  const size_t first = (kBoundary - past) % kBoundary + shift;
  source(reader, context, memory.data() + first);
  for (size_t i = 0; i < memory.size(); ++i) {
    if (i >= first && i < first + values) continue;
    EXPECT_EQ(static_cast<float>(memory[i]), kBeside) << "beside the sample, at " << i;
  }
  return {memory.begin() + static_cast<ptrdiff_t>(first),
          memory.begin() + static_cast<ptrdiff_t>(first + values)};
}

template <typename Source>
void expect_rounded(const Augmentation& recipe, const SampleContext& context, size_t shift,
                    const Source& source) {
  ImageReader reader(recipe);
  const auto exact = sample_in_memory<float>(reader, recipe, context, shift, source);
  const auto rounded = sample_in_memory<BFloat16>(reader, recipe, context, shift, source);
  for (size_t i = 0; i < exact.size(); ++i)
    ASSERT_EQ(rounded[i].bits, BFloat16(exact[i]).bits) << i << ": " << exact[i];
}

TEST(BFloat16Samples, AreThoseOfFloat32RoundedForAnyRecipe) {
  Choices choose(21);
  for (uint64_t trial = 0; trial < 300; ++trial) {
    const Augmentation recipe = random_recipe(choose);
    const Bitmap bitmap = picture(choose.between(1, 200), choose.between(1, 150), trial);
    const std::string encoded = choose.coin() ? encode_jpeg(bitmap) : encode_png(bitmap);
    const PlanarBitmap pixels = planar(bitmap);
    const SampleContext context{.seed = 4, .epoch = trial % 3, .sample = trial};
    const auto shift = static_cast<size_t>(choose.between(0, 3));
    SCOPED_TRACE(std::to_string(bitmap.width) + " x " + std::to_string(bitmap.height) + ", " +
                 describe(recipe));
    expect_rounded(recipe, context, shift, [&](ImageReader& reader, const SampleContext& of, auto* out) {
      reader.read(as_bytes(encoded), "x", of, out);
    });
    expect_rounded(recipe, context, shift, [&](ImageReader& reader, const SampleContext& of, auto* out) {
      reader.read(pixels.view(), of, out);
    });
  }
}

// Samples that are written past the caches: 640 rows of 224 and 226 numbers.
TEST(BFloat16Samples, MayBeLarge) {
  const PlanarBitmap pixels = planar(picture(301, 277, 5));
  for (const int width : {224, 226})
    for (const size_t shift : {size_t{0}, size_t{1}})
      for (const bool jittered : {false, true}) {
        Augmentation recipe{.height = 640, .width = width, .crop = Crop::kRandomResized, .flip = true};
        if (jittered) recipe.jitter.brightness = 0.5f;
        expect_rounded(recipe, {.seed = 3, .epoch = 1, .sample = 9}, shift,
                       [&](ImageReader& reader, const SampleContext& of, auto* out) {
                         reader.read(pixels.view(), of, out);
                       });
      }
}

TEST(BFloat16Samples, OtherTypesAreRefused) {
  validate_sample_dtype(DType::kFloat32, "here");
  validate_sample_dtype(DType::kBFloat16, "here");
  EXPECT_EQ(message_of<InvalidArgument>([] { validate_sample_dtype(DType::kUInt8, "here"); }),
            "here: dtype must be float32 or bfloat16, it is uint8");
}

}  // namespace
}  // namespace mox::image
