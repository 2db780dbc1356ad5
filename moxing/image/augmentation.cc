#include "moxing/image/augmentation.h"

#include <fmt/format.h>

#include <algorithm>

#include "moxing/image/internal/colour.h"
#include "moxing/image/internal/crop.h"
#include "runtime/base/error.h"

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
          fmt::format("padding must be at least 0 and less than height and width, it is {}", recipe.padding));
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

// Samples of at least this size are written past the caches: a batch of them is larger than those are, so that its first
// samples would be gone from them anyway before somebody reads the batch.
constexpr size_t kPastCachesBytes = size_t{1} << 18;

}  // namespace

class ImageReader::Implementation {
 public:
  Implementation(const Augmentation& recipe, DecodeLimits limits) : recipe_(recipe), decoder_(limits) {
    validate(recipe, "image augmentation");
    const size_t bytes = static_cast<size_t>(recipe.channels) * plane_pixels() * sizeof(float);
    past_caches_ = bytes >= kPastCachesBytes && !recipe.jitter.any();
    for (size_t c = 0; c < 3; ++c) {
      scale_[c] = 1 / (255 * recipe.stddev[c]);
      offset_[c] = -recipe.mean[c] / recipe.stddev[c];
    }
  }

  void read(std::span<const std::byte> encoded, const std::string& name, const SampleContext& context,
            float* out) {
    const RandomStream random = context.random();
    decoder_.open(encoded, name);
    internal::CropPlan plan = internal::plan_crop(recipe_, decoder_.width(), decoder_.height(), random);
    if (recipe_.fast_decode) {
      const int reduction = decoder_.reduce(internal::possible_reduction(plan.resampling));
      plan.resampling = internal::reduced(plan.resampling, reduction);
    }
    begin(plan, out);
    resample_to(plan, out, [&](const auto& rows) {
      decoder_.decode(resampler_.needed(),
                      [&](int y, const uint8_t* pixels) { resampler_.add_row(y, pixels, rows); });
    });
    finish(random, out);
  }

  void read(const PlanarView& image, const SampleContext& context, float* out) {
    const RandomStream random = context.random();
    const internal::CropPlan plan = internal::plan_crop(recipe_, image.width, image.height, random);
    begin(plan, out);
    resample_to(plan, out, [&](const auto& rows) { resampler_.add_image(image, rows); });
    finish(random, out);
  }

  Box needed_pixels(int width, int height, const SampleContext& context) const {
    return image::needed_pixels(internal::plan_crop(recipe_, width, height, context.random()).resampling);
  }

 private:
  size_t plane_pixels() const {
    return static_cast<size_t>(recipe_.height) * static_cast<size_t>(recipe_.width);
  }

  // Colours change before they are normalised: with jitter, the planes hold [0, 1] at first.
  float scale(size_t c) const { return recipe_.jitter.any() ? 1.0f / 255 : scale_[c]; }
  float offset(size_t c) const { return recipe_.jitter.any() ? 0 : offset_[c]; }

  void begin(const internal::CropPlan& plan, float* out) {
    resampler_.prepare(plan.resampling);
    const Box& output = plan.resampling.output;
    if (output.width == recipe_.width && output.height == recipe_.height) return;
    for (int c = 0; c < recipe_.channels; ++c)  // black around it
      std::fill_n(out + static_cast<size_t>(c) * plane_pixels(), plane_pixels(),
                  offset(static_cast<size_t>(c)));
  }

  // resample(rows): gives the resampler its input, and `rows` as where its output goes.
  template <typename Resample>
  void resample_to(const internal::CropPlan& plan, float* out, Resample&& resample) {
    const auto stride = static_cast<size_t>(recipe_.width);
    float* const first = out + static_cast<size_t>(plan.y) * stride + static_cast<size_t>(plan.x);
    if (recipe_.channels == 1) {
      resample([&](int y, const uint8_t* const* planes) {
        internal::row_to_grey(planes, plan.resampling.output.width, scale(0), offset(0),
                              first + static_cast<size_t>(y) * stride);
      });
      return;
    }
    resample(FloatPlanes{.planes = {first, first + plane_pixels(), first + 2 * plane_pixels()},
                         .stride = stride,
                         .scale = {scale(0), scale(1), scale(2)},
                         .offset = {offset(0), offset(1), offset(2)},
                         .past_caches = past_caches_});
  }

  void finish(const RandomStream& random, float* out) const {
    if (recipe_.jitter.any()) {
      float* const planes[] = {out, out + plane_pixels(), out + 2 * plane_pixels()};
      internal::jitter_colours(recipe_.jitter, random, plane_pixels(), planes);
      for (size_t c = 0; c < 3; ++c)
        for (size_t i = 0; i < plane_pixels(); ++i)
          planes[c][i] = planes[c][i] * (255 * scale_[c]) + offset_[c];
    }
    if (recipe_.cut_out > 0) cut_out(random, out);
  }

  // The square's centre lies in the image; what of it lies outside is cut off.
  void cut_out(const RandomStream& random, float* out) const {
    const int x =
        static_cast<int>(random.below(internal::kCutOutXPosition, static_cast<uint64_t>(recipe_.width)));
    const int y =
        static_cast<int>(random.below(internal::kCutOutYPosition, static_cast<uint64_t>(recipe_.height)));
    const int left = std::max(0, x - recipe_.cut_out / 2), top = std::max(0, y - recipe_.cut_out / 2);
    const int right = std::min(recipe_.width, x - recipe_.cut_out / 2 + recipe_.cut_out);
    const int bottom = std::min(recipe_.height, y - recipe_.cut_out / 2 + recipe_.cut_out);
    for (int c = 0; c < recipe_.channels; ++c)
      for (int row = top; row < bottom; ++row)
        std::fill(out + static_cast<size_t>(c) * plane_pixels() + row * recipe_.width + left,
                  out + static_cast<size_t>(c) * plane_pixels() + row * recipe_.width + right, 0.0f);
  }

  Augmentation recipe_;
  Decoder decoder_;
  Resampler resampler_;
  std::array<float, 3> scale_, offset_;
  bool past_caches_ = false;
};

ImageReader::ImageReader(const Augmentation& augmentation, DecodeLimits limits)
    : implementation_(std::make_unique<Implementation>(augmentation, limits)) {}
ImageReader::~ImageReader() = default;
void ImageReader::read(std::span<const std::byte> encoded, const std::string& name,
                       const SampleContext& context, float* out) {
  implementation_->read(encoded, name, context, out);
}
void ImageReader::read(const PlanarView& pixels, const SampleContext& context, float* out) {
  implementation_->read(pixels, context, out);
}
Box ImageReader::needed_pixels(int width, int height, const SampleContext& context) const {
  return implementation_->needed_pixels(width, height, context);
}

}  // namespace mox::image
