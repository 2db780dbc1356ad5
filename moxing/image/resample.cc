#include "moxing/image/resample.h"

#include <fmt/format.h>
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "moxing/image/internal/aligned_buffer.h"
#include "moxing/image/internal/resample_axis.h"
#include "moxing/image/internal/row_kernels.h"
#include "moxing/image/internal/row_taps.h"
#include "ops/processor/processor.h"
#include "runtime/base/error.h"

namespace mox::image {
namespace {

using internal::AxisGeometry;

// Both ways give the same bits, so this need not be what the ranks of a job agree on.
bool is_wide() { return available_processor().lanes >= 16; }

struct Geometry {
  explicit Geometry(const Resampling& wanted)
      : horizontal(wanted.filter, wanted.source.x, wanted.source.width, wanted.resized_width),
        vertical(wanted.filter, wanted.source.y, wanted.source.height, wanted.resized_height) {}
  AxisGeometry horizontal, vertical;
};

void require_possible(const Resampling& wanted) {
  const Box& output = wanted.output;
  const Region& source = wanted.source;
  if (!(source.width >= 1) || !(source.height >= 1) || output.width < 1 || output.height < 1 ||
      output.x < 0 || output.y < 0 || output.x + output.width > wanted.resized_width ||
      output.y + output.height > wanted.resized_height)
    throw InvalidArgument(
        fmt::format("resample: [{}, {}) x [{}, {}) of an image of {} x {} pixels that is resized to {} x {} "
                    "cannot be made",
                    output.x, output.x + output.width, output.y, output.y + output.height, source.width,
                    source.height, wanted.resized_width, wanted.resized_height));
}

Box needed_of(const Geometry& geometry, const Box& output) {
  const auto span = [](const AxisGeometry& axis, int begin, int size, int* start, int* length) {
    *start = axis.origin() + axis.first(begin);
    *length = axis.end(begin + size - 1) - axis.first(begin);
  };
  Box needed;
  span(geometry.horizontal, output.x, output.width, &needed.x, &needed.width);
  span(geometry.vertical, output.y, output.height, &needed.y, &needed.height);
  return needed;
}

// How many rows ahead pixels in memory are fetched: parts of rows are too short for the processor to see by
// itself where they go on.
constexpr int kRowsAhead = 8;

size_t rounded_up(size_t count, size_t multiple) { return (count + multiple - 1) / multiple * multiple; }

}  // namespace

Box needed_pixels(const Resampling& resampling) {
  require_possible(resampling);
  return needed_of(Geometry(resampling), resampling.output);
}

class Resampler::Implementation {
 public:
  explicit Implementation(Vectors vectors) : avx512_(vectors == Vectors::kBest && is_wide()) {}

  void prepare(const Resampling& wanted) {
    require_possible(wanted);
    const Geometry geometry(wanted);
    const Box& output = wanted.output;
    needed_ = needed_of(geometry, output);
    next_row_ = 0;
    horizontal_.prepare(wanted.filter, geometry.horizontal, output.x, output.width);
    vertical_.prepare(wanted.filter, geometry.vertical, output.y, output.height);
    kernels_ = &taps_.prepare(horizontal_, wanted.flip, avx512_);
    // The kernels read past the last column as many as the last output's weights and a vector cover.
    const size_t columns = needed_.width + horizontal_.taps() + internal::kColumnSlack;
    const size_t stride = rounded_up(columns, internal::kColumnSlack);
    int16_t* const memory = columns_memory_.take(2 * kPlanes * stride);
    for (size_t i = 0; i < 2; ++i)
      columns_[i] = {memory + i * kPlanes * stride, static_cast<ptrdiff_t>(stride)};
    rows_.resize(vertical_.taps() + 1);
  }

  Box needed() const { return needed_; }

  template <typename Output>
  void add_row(int y, const uint8_t* pixels, const Output& out) {
    const size_t plane = rounded_up(needed_.width, kRowSlackBytes) + kRowSlackBytes;
    const int rows = vertical_.taps();
    uint8_t* const ring = ring_.take(kPlanes * plane * static_cast<size_t>(rows));
    const auto row = [&](int i) { return ring + kPlanes * plane * static_cast<size_t>(i % rows); };
    uint8_t* const planes[kPlanes] = {row(y), row(y) + plane, row(y) + 2 * plane};
    split_pixels(pixels, needed_.width, planes);
    for (; next_row_ < vertical_.size() && vertical_.end(next_row_) <= y + 1; ++next_row_) {
      combine(next_row_, row, plane, {});
      give(next_row_, out);
    }
  }

  template <typename Output>
  void add_image(const PlanarView& image, const Output& out) {
    MOX_ASSERT(image.first_row <= needed_.y && needed_.y + needed_.height <= image.first_row + image.rows &&
                   needed_.x + needed_.width <= image.width,
               "the image has the pixels that are needed");
    const auto row = [&](int i) { return image.row(needed_.y + i) + needed_.x; };
    // A row of columns is finished long before it is read: what is written to the output, past the caches
    // perhaps, would otherwise stand between the two.
    int asked = 0;
    for (; next_row_ < vertical_.size(); ++next_row_) {
      ahead_.clear();
      for (const int end = std::min(vertical_.end(next_row_) + kRowsAhead, needed_.height); asked < end;
           ++asked)
        ahead_.push_back(row(asked));
      combine(next_row_, row, image.width, ahead_);
      if (next_row_ > 0) give(next_row_ - 1, out);
    }
    give(next_row_ - 1, out);
  }

 private:
  // Row i of the output in columns; row(i): the red plane of row i of what is needed.
  template <typename Row>
  void combine(int i, Row&& row, ptrdiff_t plane_stride, const std::vector<const uint8_t*>& ahead) {
    const int first = vertical_.first(i), count = vertical_.count(i);
    for (int k = 0; k < count; ++k) rows_[k] = row(first + k);
    rows_[count] = row(first + count - 1);
    kernels_->combine({rows_.data(), vertical_.weights(i), count, plane_stride, ahead.data(),
                       static_cast<int>(ahead.size())},
                      needed_.width, columns_[i % 2]);
  }

  void give(int y, const PlaneSink& sink) {
    const size_t plane = rounded_up(horizontal_.size(), kRowSlackBytes);
    uint8_t* const bytes = bytes_.take(kPlanes * plane);
    uint8_t* const planes[kPlanes] = {bytes, bytes + plane, bytes + 2 * plane};
    kernels_->to_bytes(columns_[y % 2], taps_.view(), planes);
    sink(y, planes);
  }

  template <typename Value>
  void give(int y, const NumberPlanes<Value>& out) {
    internal::NumberRow<Value> row{};
    row.streamed = out.past_caches;
    for (size_t c = 0; c < kPlanes; ++c) {
      row.planes[c] = out.planes[c] + y * out.stride;
      row.scale[c] = out.scale[c];
      row.offset[c] = out.offset[c];
      if (reinterpret_cast<uintptr_t>(row.planes[c]) % 64 != 0) row.streamed = false;
    }
    if constexpr (std::is_same_v<Value, float>)
      kernels_->to_floats(columns_[y % 2], taps_.view(), row);
    else
      kernels_->to_bfloat16s(columns_[y % 2], taps_.view(), row);
    // What went past the caches is there for others before anything that is written later.
    if (out.past_caches && y + 1 == vertical_.size()) _mm_sfence();
  }

  const bool avx512_;
  Box needed_;
  internal::Axis horizontal_, vertical_;  // relative to `needed_`
  internal::RowTaps taps_;
  const internal::RowKernels* kernels_ = nullptr;
  int next_row_ = 0;                       // of the output
  internal::AlignedBuffer<uint8_t> ring_;  // the source rows that count in it, in planes
  std::vector<const uint8_t*> rows_, ahead_;
  internal::AlignedBuffer<int16_t> columns_memory_;
  internal::Columns columns_[2] = {};  // of output rows in turn
  internal::AlignedBuffer<uint8_t> bytes_;
};

Resampler::Resampler(Vectors vectors) : implementation_(std::make_unique<Implementation>(vectors)) {}
Resampler::~Resampler() = default;
void Resampler::prepare(const Resampling& resampling) { implementation_->prepare(resampling); }
Box Resampler::needed() const { return implementation_->needed(); }
void Resampler::add_row(int y, const uint8_t* pixels, PlaneSink out) {
  implementation_->add_row(y, pixels, out);
}
void Resampler::add_row(int y, const uint8_t* pixels, const FloatPlanes& out) {
  implementation_->add_row(y, pixels, out);
}
void Resampler::add_row(int y, const uint8_t* pixels, const BFloat16Planes& out) {
  implementation_->add_row(y, pixels, out);
}
void Resampler::add_image(const PlanarView& image, PlaneSink out) { implementation_->add_image(image, out); }
void Resampler::add_image(const PlanarView& image, const FloatPlanes& out) {
  implementation_->add_image(image, out);
}
void Resampler::add_image(const PlanarView& image, const BFloat16Planes& out) {
  implementation_->add_image(image, out);
}

Bitmap resample(const Bitmap& source, const Resampling& resampling, Vectors vectors) {
  const Region& box = resampling.source;
  if (box.x < 0 || box.y < 0 || box.x + box.width > source.width || box.y + box.height > source.height)
    throw InvalidArgument(
        fmt::format("resample: the box [{}, {}) x [{}, {}) is not inside the image of {} x {}", box.x,
                    box.x + box.width, box.y, box.y + box.height, source.width, source.height));
  Resampler resampler(vectors);
  resampler.prepare(resampling);
  Bitmap result(resampling.output.width, resampling.output.height);
  const PlanarBitmap pixels = planar(source);
  resampler.add_image(pixels.view(), [&](int y, const uint8_t* const* planes) {
    for (int x = 0; x < result.width; ++x)
      for (int c = 0; c < kPlanes; ++c) result.row(y)[x * kPixelBytes + c] = planes[c][x];
  });
  return result;
}

}  // namespace mox::image
