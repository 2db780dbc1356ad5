#include "moxing/image/augmentation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

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

// How far ahead of the row that is resampled the pixels of a bitmap are asked for: parts of rows are too short for the
// processor to see by itself where they go on. They go to the second-level cache; the first would not hold so many.
constexpr int kRowsAhead = 16;

void prefetch(const uint8_t* from, size_t bytes) {
  constexpr size_t kLine = 64;
  constexpr int kSecondLevel = 2;
  for (size_t at = 0; at < bytes; at += kLine) __builtin_prefetch(from + at, 0, kSecondLevel);
}

}  // namespace

class ImageReader::Implementation {
 public:
  Implementation(const Augmentation& recipe, DecodeLimits limits) : recipe_(recipe), decoder_(limits) {
    validate(recipe, "image augmentation");
    const size_t bytes = static_cast<size_t>(recipe.channels) * plane_pixels() * sizeof(float);
    if (bytes >= kPastCachesBytes && !recipe.jitter.any()) stores_ = internal::Stores::kPastCaches;
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
    decoder_.decode(resampler_.needed(),
                    [&](int y, const uint8_t* pixels) { add_row(plan, y, pixels, out); });
    finish(random, out);
  }

  void read(const Bitmap& bitmap, const SampleContext& context, float* out) {
    const RandomStream random = context.random();
    const internal::CropPlan plan = internal::plan_crop(recipe_, bitmap.width, bitmap.height, random);
    prefetch_start(bitmap, plan.resampling.source);
    begin(plan, out);
    const Box needed = resampler_.needed();
    const size_t bytes = static_cast<size_t>(needed.width) * kPixelBytes;
    const uint8_t* const end = bitmap.pixels.data() + bitmap.pixels.size();
    for (int y = 0; y < needed.height; ++y) {
      const uint8_t* row = bitmap.row(needed.y + y) + static_cast<size_t>(needed.x) * kPixelBytes;
      if (y + kRowsAhead < needed.height) prefetch(row + kRowsAhead * bitmap.stride(), bytes);
      if (static_cast<size_t>(end - row) < bytes + kRowSlackBytes) {  // nothing behind it that may be read
        row_.resize(bytes + kRowSlackBytes);
        std::memcpy(row_.data(), row, bytes);
        row = row_.data();
      }
      add_row(plan, y, row, out);
    }
    finish(random, out);
  }

 private:
  size_t plane_pixels() const {
    return static_cast<size_t>(recipe_.height) * static_cast<size_t>(recipe_.width);
  }

  // The first rows of what is resampled, while the weights are being computed.
  static void prefetch_start(const Bitmap& bitmap, const Region& source) {
    const int left = static_cast<int>(source.x), top = static_cast<int>(source.y);
    const int rows = std::min(kRowsAhead, bitmap.height - top);
    for (int y = 0; y < rows; ++y)
      prefetch(bitmap.row(top + y) + static_cast<size_t>(left) * kPixelBytes,
               static_cast<size_t>(source.width) * kPixelBytes);
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

  void add_row(const internal::CropPlan& plan, int y, const uint8_t* pixels, float* out) {
    resampler_.add_row(y, pixels, [&](int out_y, const uint8_t* row) {
      const int width = plan.resampling.output.width;
      float* first = out + static_cast<size_t>(plan.y + out_y) * static_cast<size_t>(recipe_.width) +
                     static_cast<size_t>(plan.x);
      if (recipe_.channels == 1) {
        internal::row_to_grey(row, width, scale(0), offset(0), first);
        return;
      }
      const float scales[] = {scale(0), scale(1), scale(2)}, offsets[] = {offset(0), offset(1), offset(2)};
      float* const planes[] = {first, first + plane_pixels(), first + 2 * plane_pixels()};
      internal::row_to_planes(row, width, scales, offsets, planes, stores_);
    });
  }

  void finish(const RandomStream& random, float* out) const {
    if (recipe_.jitter.any()) {
      float* const planes[] = {out, out + plane_pixels(), out + 2 * plane_pixels()};
      internal::jitter_colours(recipe_.jitter, random, plane_pixels(), planes);
      for (size_t c = 0; c < 3; ++c)
        for (size_t i = 0; i < plane_pixels(); ++i)
          planes[c][i] = planes[c][i] * (255 * scale_[c]) + offset_[c];
    }
    if (stores_ == internal::Stores::kPastCaches) internal::finish_stores();
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
  internal::Stores stores_ = internal::Stores::kCached;
  std::vector<uint8_t> row_;
};

ImageReader::ImageReader(const Augmentation& augmentation, DecodeLimits limits)
    : implementation_(std::make_unique<Implementation>(augmentation, limits)) {}
ImageReader::~ImageReader() = default;
void ImageReader::read(std::span<const std::byte> encoded, const std::string& name,
                       const SampleContext& context, float* out) {
  implementation_->read(encoded, name, context, out);
}
void ImageReader::read(const Bitmap& pixels, const SampleContext& context, float* out) {
  implementation_->read(pixels, context, out);
}

}  // namespace mox::image
