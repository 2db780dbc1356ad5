// Resampling with antialiasing: when an image is made smaller, the filter grows with the scale, so that every
// pixel of the source counts. The filters and their borders are Pillow's (Image.resize with
// BILINEAR and BOX).
//
// An output pixel i of n, from m source pixels, has its centre at c = (i + 0.5) m / n and weighs source pixel
// j by filter((j + 0.5 - c) / s), s = max(m / n, 1); the weights of the pixels inside the source sum to one.
// Bilinear: filter(t) = max(0, 1 - |t|). Area: 1 for -0.5 < t <= 0.5, else 0.
//
// Rows are combined first, to 16 bits with 7 of fraction, then columns; the result is rounded to 8 bits once.
// Weights have 14 bits, and it is their running sums that are rounded. So a result of h columns and v rows is
// within
//   0.5 + 2^-7 + min(v, 16) 2^-9 + 255 (h + v - 2) 2^-15
// of the exact one. Pillow, which rounds after each direction, is within 1; hence the two differ by 1 at most
// where h + v <= 60: for reductions up to 14 in both directions. The bits are the same on every processor.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "moxing/image/bitmap.h"
#include "moxing/image/planar_bitmap.h"
#include "runtime/base/function_ref.h"
#include "runtime/tensor/dtype.h"

namespace mox::image {

enum class Filter { kBilinear, kArea };

// A rectangle whose borders may lie within pixels: [x, x + width) by [y, y + height).
struct Region {
  double x = 0, y = 0, width = 0, height = 0;

  static Region of(const Box& box) {
    return {static_cast<double>(box.x), static_cast<double>(box.y), static_cast<double>(box.width),
            static_cast<double>(box.height)};
  }
};

struct Resampling {
  Region source;  // what is resized: pixels that lie outside of it as a whole have no influence
  int resized_width = 0, resized_height = 0;  // the size it gets
  Box output;                                 // the part of the resized image that is wanted
  bool flip = false;                          // mirrors the rows of `output`
  Filter filter = Filter::kBilinear;
};

// The part of the source image that counts. Throws InvalidArgument for sizes below 1 or an output outside of
// the resized image.
Box needed_pixels(const Resampling& resampling);

// Takes the output as bytes: row `y`, one plane for each channel. Valid during the call.
using PlaneSink = FunctionRef<void(int y, const uint8_t* const* planes)>;

// Takes the output as numbers: a value v, 0 to 255, of channel c becomes v * scale[c] + offset[c], rounded
// once to float32. Value is float, or BFloat16, to which that float32 is rounded to nearest even.
template <typename Value>
struct NumberPlanes {
  std::array<Value*, kPlanes> planes{};  // of the output's first row
  size_t stride = 0;                     // numbers from one row to the next
  std::array<float, kPlanes> scale{}, offset{};
  // Faster for what is not read again soon, in particular for more than the caches hold: rows that begin on
  // 64-byte boundaries are written to memory without it having been read. The bits are the same.
  bool past_caches = false;
};
using FloatPlanes = NumberPlanes<float>;
using BFloat16Planes = NumberPlanes<BFloat16>;

// Whose instructions are used: kAvx2 takes no others where the processor has more. The bits are the same.
enum class Vectors { kBest, kAvx2 };

// Resamples one image after another: row by row, as a decoder produces it, or out of memory. Keeps its memory
// between images. Used by one thread.
class Resampler {
 public:
  explicit Resampler(Vectors vectors = Vectors::kBest);
  ~Resampler();

  // Begins an image. Throws InvalidArgument as needed_pixels does.
  void prepare(const Resampling& resampling);

  // The part of the source image that counts.
  Box needed() const;

  // Takes row `y` of `needed()` (in order from 0), pixels as Bitmap has them, and gives out those rows of the
  // output that are ready by then: each row once, in order.
  void add_row(int y, const uint8_t* pixels, PlaneSink out);
  void add_row(int y, const uint8_t* pixels, const FloatPlanes& out);
  void add_row(int y, const uint8_t* pixels, const BFloat16Planes& out);

  // The same of all rows at once. `image` has all of `needed()`.
  void add_image(const PlanarView& image, PlaneSink out);
  void add_image(const PlanarView& image, const FloatPlanes& out);
  void add_image(const PlanarView& image, const BFloat16Planes& out);

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

// A whole bitmap.
Bitmap resample(const Bitmap& source, const Resampling& resampling, Vectors vectors = Vectors::kBest);

}  // namespace mox::image
