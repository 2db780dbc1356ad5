// Resampling with antialiasing: when an image is made smaller, the filter grows with the scale, so that every pixel of the
// source counts. The filters, their borders and the rounding to 8 bits are Pillow's (Image.resize with BILINEAR and
// BOX); weights have 14 bits here, so that a result may differ from Pillow's by 1.
//
// An output pixel i of n, from m source pixels, has its centre at c = (i + 0.5) m / n and weighs source pixel j by
// filter((j + 0.5 - c) / s), s = max(m / n, 1); the weights of the pixels inside the source sum to one. Bilinear:
// filter(t) = max(0, 1 - |t|). Area: 1 for -0.5 < t <= 0.5, else 0.
#pragma once

#include <cstdint>
#include <vector>

#include "moxing/image/bitmap.h"
#include "moxing/image/decode.h"

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

// Resamples images row by row, as a decoder produces them. Keeps its memory between images. Used by one thread.
class Resampler {
 public:
  // Throws InvalidArgument for sizes below 1 or an output outside of the resized image.
  void prepare(const Resampling& resampling);

  // The part of the source image whose rows are needed.
  Box needed() const { return needed_; }

  // Takes row `y` of `needed()` (in order from 0, followed by kRowSlackBytes), and hands over those rows of the output
  // that are ready by then: each row once, in order.
  void add_row(int y, const uint8_t* pixels, RowSink sink);

 private:
  // For each output pixel of one axis: the source pixels [first, first + count) and their weights.
  struct Axis {
    int taps = 0;    // the largest count
    int stride = 0;  // from one pixel's weights to the next one's: even, with zeros behind where fewer count
    std::vector<int> first, count;
    std::vector<int16_t> weights;

    int end(size_t i) const { return first[i] + count[i]; }
  };

  // What fills the axis for outputs [begin, begin + size) of `resized`, from a source that starts at `offset`, within the
  // first `touched` pixels.
  void prepare_axis(Axis* axis, Filter filter, double offset, double source_size, int touched, int resized,
                    int begin, int size);
  void prepare_groups(bool flip);
  template <int kSteps>
  void resample_row(const uint8_t* pixels, uint8_t* out) const;
  template <int kPairs>
  void combine(const uint8_t* const* rows, const int16_t* weights, int pairs);
  void combine_rows(int y);  // makes row `y` of the output in `out_`

  Box needed_;
  int width_ = 0, height_ = 0;  // of the output
  Axis horizontal_, vertical_;  // relative to `needed_`

  // The horizontal axis as the kernel loads it: output pixels in groups of four, weights in steps of four.
  int steps_ = 0;
  std::vector<int> group_first_;
  std::vector<int16_t> group_weights_;

  std::vector<double> exact_weights_;
  int next_row_ = 0;           // of the output
  std::vector<uint8_t> ring_;  // source rows of the output's width
  int ring_rows_ = 0;
  size_t ring_stride_ = 0;
  std::vector<const uint8_t*> row_pointers_;
  std::vector<uint8_t> out_;
};

// A whole bitmap.
Bitmap resample(const Bitmap& source, const Resampling& resampling);

}  // namespace mox::image
