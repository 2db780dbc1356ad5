#include "moxing/image/augmentation.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <vector>

#include "moxing/image/internal/colour.h"
#include "moxing/image/internal/crop.h"
#include "runtime/base/error.h"
#include "runtime/tensor/round_to_bfloat16.h"

namespace mox::image {

void validate(const Augmentation& recipe, const std::string& where) {
  const auto require = [&](bool good, const std::string& what) {
    if (!good) throw InvalidArgument(fmt::format("{}: {}", where, what));
  };
  constexpr int kMostPixels = 1 << 14;
  const auto is_size = [](int size) { return size >= 1 && size <= kMostPixels; };
  require(is_size(recipe.height) && is_size(recipe.width),
          fmt::format("height and width must be 1 to {}, they are {} and {}", kMostPixels, recipe.height,
                      recipe.width));
  require(recipe.channels == 1 || recipe.channels == 3,
          fmt::format("channels must be 1 or 3, it is {}", recipe.channels));
  require(is_size(recipe.resize_shorter) && is_size(recipe.resize_shorter_max) &&
              recipe.resize_shorter <= recipe.resize_shorter_max,
          fmt::format("resize_shorter to resize_shorter_max must be a range in 1 to {}, it is {} to {}",
                      kMostPixels, recipe.resize_shorter, recipe.resize_shorter_max));
  require(recipe.min_area > 0 && recipe.min_area <= recipe.max_area && recipe.max_area <= 1,
          fmt::format("min_area to max_area must be a range in 0 to 1, it is {} to {}", recipe.min_area,
                      recipe.max_area));
  require(recipe.min_proportion >= 1e-3 && recipe.min_proportion <= recipe.max_proportion &&
              recipe.max_proportion <= 1e3,
          fmt::format("min_proportion to max_proportion must be a range in 0.001 to 1000, it is {} to {}",
                      recipe.min_proportion, recipe.max_proportion));
  require(recipe.padding >= 0 && recipe.padding < std::min(recipe.height, recipe.width),
          fmt::format("padding must be at least 0 and less than height and width of the images, which are {} "
                      "and {}; it is {}. Use larger images (model.image_size), or a recipe with less padding",
                      recipe.height, recipe.width, recipe.padding));
  const auto in = [](float value, float high) { return value >= 0 && value <= high; };
  require(in(recipe.jitter.brightness, 1e3f) && in(recipe.jitter.contrast, 1e3f) &&
              in(recipe.jitter.saturation, 1e3f) && in(recipe.jitter.hue, 0.5f),
          "jitter must not be negative, and its hue at most 0.5");
  require(!recipe.jitter.any() || recipe.channels == 3, "jitter works on colours: channels must be 3");
  require(recipe.cut_out >= 0 && recipe.cut_out <= kMostPixels,
          fmt::format("cut_out must be 0 to {}, it is {}", kMostPixels, recipe.cut_out));
  for (float stddev : recipe.stddev)
    require(stddev > 0, fmt::format("stddev must be above 0, it is {}", stddev));
}

void validate_sample_dtype(DType dtype, const std::string& where) {
  if (dtype != DType::kFloat32 && dtype != DType::kBFloat16)
    throw InvalidArgument(
        fmt::format("{}: dtype must be float32 or bfloat16, it is {}", where, to_string(dtype)));
}

std::string describe(const Augmentation& recipe) {
  return fmt::format(
      "[{}, {}, {}] crop {} {}-{} {}-{} {}-{} {} flip {} jitter {} {} {} {} cut {} mean {} stddev {} "
      "filter {} fast {}",
      recipe.channels, recipe.height, recipe.width, static_cast<int>(recipe.crop), recipe.resize_shorter,
      recipe.resize_shorter_max, recipe.min_area, recipe.max_area, recipe.min_proportion,
      recipe.max_proportion, recipe.padding, recipe.flip, recipe.jitter.brightness, recipe.jitter.contrast,
      recipe.jitter.saturation, recipe.jitter.hue, recipe.cut_out, fmt::join(recipe.mean, " "),
      fmt::join(recipe.stddev, " "), static_cast<int>(recipe.filter), recipe.fast_decode);
}

namespace {

// Samples of at least this size are written past the caches: a batch of them is larger than those are, so
// that its first samples would be gone from them anyway before somebody reads the batch.
constexpr size_t kPastCachesBytes = size_t{1} << 18;

// 0 to 255 becomes 0 to 1.
constexpr std::array<float, 3> kUnitScale{1.0f / 255, 1.0f / 255, 1.0f / 255}, kNoOffset{};

}  // namespace

class ImageReader::Implementation {
 public:
  Implementation(const Augmentation& recipe, DecodeLimits limits) : recipe_(recipe), decoder_(limits) {
    validate(recipe, "image augmentation");
    for (size_t c = 0; c < 3; ++c) {
      scale_[c] = 1 / (255 * recipe.stddev[c]);
      offset_[c] = -recipe.mean[c] / recipe.stddev[c];
    }
  }

  template <typename Value>
  void read(std::span<const std::byte> encoded, const std::string& name, const SampleContext& context,
            Value* out) {
    const RandomStream random = context.random();
    decoder_.open(encoded, name);
    internal::CropPlan plan = internal::plan_crop(recipe_, decoder_.width(), decoder_.height(), random);
    if (recipe_.fast_decode) {
      const int reduction = decoder_.reduce(internal::possible_reduction(plan.resampling));
      plan.resampling = internal::reduced(plan.resampling, reduction);
    }
    make(plan, random, out, [&](const auto& rows) {
      decoder_.decode(resampler_.needed(),
                      [&](int y, const uint8_t* pixels) { resampler_.add_row(y, pixels, rows); });
    });
  }

  template <typename Value>
  void read(const PlanarView& image, const SampleContext& context, Value* out) {
    const RandomStream random = context.random();
    const internal::CropPlan plan = internal::plan_crop(recipe_, image.width, image.height, random);
    make(plan, random, out, [&](const auto& rows) { resampler_.add_image(image, rows); });
  }

  Box needed_pixels(int width, int height, const SampleContext& context) const {
    return image::needed_pixels(internal::plan_crop(recipe_, width, height, context.random()).resampling);
  }

 private:
  size_t plane_pixels() const { return static_cast<size_t>(recipe_.height) * recipe_.width; }
  size_t values() const { return recipe_.channels * plane_pixels(); }

  // resample(rows): gives the resampler its input, and `rows` as where its output goes.
  template <typename Value, typename Resample>
  void make(const internal::CropPlan& plan, const RandomStream& random, Value* out, Resample&& resample) {
    resampler_.prepare(plan.resampling);
    if (!recipe_.jitter.any()) {
      fill_and_resample(plan, scale_, offset_, out, resample);
    } else if constexpr (std::is_same_v<Value, float>) {
      fill_and_resample(plan, kUnitScale, kNoOffset, out, resample);
      jitter_and_normalise(random, out);
    } else {
      jittered_.resize(values());
      fill_and_resample(plan, kUnitScale, kNoOffset, jittered_.data(), resample);
      jitter_and_normalise(random, jittered_.data());
      round_to_bfloat16(jittered_, out);
    }
    if (recipe_.cut_out > 0) cut_out(random, out);
  }

  // Of colours in [0, 1]: they change before they are normalised.
  void jitter_and_normalise(const RandomStream& random, float* out) const {
    float* const planes[] = {out, out + plane_pixels(), out + 2 * plane_pixels()};
    internal::jitter_colours(recipe_.jitter, random, plane_pixels(), planes);
    for (size_t c = 0; c < 3; ++c)
      for (size_t i = 0; i < plane_pixels(); ++i)
        planes[c][i] = planes[c][i] * (255 * scale_[c]) + offset_[c];
  }

  template <typename Value, typename Resample>
  void fill_and_resample(const internal::CropPlan& plan, const std::array<float, 3>& scale,
                         const std::array<float, 3>& offset, Value* out, Resample&& resample) {
    const Box& output = plan.resampling.output;
    if (output.width != recipe_.width || output.height != recipe_.height)
      for (size_t c = 0; c < static_cast<size_t>(recipe_.channels); ++c)  // black around it
        std::fill_n(out + c * plane_pixels(), plane_pixels(), static_cast<Value>(offset[c]));
    const size_t stride = recipe_.width;
    Value* const first = out + plan.y * stride + plan.x;
    if (recipe_.channels == 1) {
      resample([&](int y, const uint8_t* const* planes) {
        internal::row_to_grey(planes, output.width, scale[0], offset[0], first + y * stride);
      });
      return;
    }
    resample(NumberPlanes<Value>{
        .planes = {first, first + plane_pixels(), first + 2 * plane_pixels()},
        .stride = stride,
        .scale = scale,
        .offset = offset,
        .past_caches = values() * sizeof(Value) >= kPastCachesBytes && !recipe_.jitter.any()});
  }

  // The square's centre lies in the image; what of it lies outside is cut off.
  template <typename Value>
  void cut_out(const RandomStream& random, Value* out) const {
    const int x = random.below(internal::kCutOutXPosition, recipe_.width);
    const int y = random.below(internal::kCutOutYPosition, recipe_.height);
    const int left = std::max(0, x - recipe_.cut_out / 2), top = std::max(0, y - recipe_.cut_out / 2);
    const int right = std::min(recipe_.width, x - recipe_.cut_out / 2 + recipe_.cut_out);
    const int bottom = std::min(recipe_.height, y - recipe_.cut_out / 2 + recipe_.cut_out);
    for (int c = 0; c < recipe_.channels; ++c)
      for (int row = top; row < bottom; ++row)
        std::fill(out + c * plane_pixels() + row * recipe_.width + left,
                  out + c * plane_pixels() + row * recipe_.width + right, static_cast<Value>(0.0f));
  }

  Augmentation recipe_;
  Decoder decoder_;
  Resampler resampler_;
  std::array<float, 3> scale_, offset_;
  std::vector<float> jittered_;  // a sample that is rounded afterwards
};

ImageReader::ImageReader(const Augmentation& augmentation, DecodeLimits limits)
    : implementation_(std::make_unique<Implementation>(augmentation, limits)) {}
ImageReader::~ImageReader() = default;
void ImageReader::read(std::span<const std::byte> encoded, const std::string& name,
                       const SampleContext& context, float* out) {
  implementation_->read(encoded, name, context, out);
}
void ImageReader::read(std::span<const std::byte> encoded, const std::string& name,
                       const SampleContext& context, BFloat16* out) {
  implementation_->read(encoded, name, context, out);
}
void ImageReader::read(const PlanarView& pixels, const SampleContext& context, float* out) {
  implementation_->read(pixels, context, out);
}
void ImageReader::read(const PlanarView& pixels, const SampleContext& context, BFloat16* out) {
  implementation_->read(pixels, context, out);
}
Box ImageReader::needed_pixels(int width, int height, const SampleContext& context) const {
  return implementation_->needed_pixels(width, height, context);
}

}  // namespace mox::image
