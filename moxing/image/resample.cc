#include "moxing/image/resample.h"

#include <fmt/format.h>
#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/base/error.h"

namespace mox::image {

// The source pixels [begin, begin + weights.size()) that make one output pixel.
struct Resampler::Span {
  int begin = 0;
  std::vector<int16_t> weights;
};

namespace {

constexpr int kWeightBits = 14;
constexpr int kOne = 1 << kWeightBits;
constexpr int kHorizontalStep = 4;  // source pixels that one vector holds

double filter_value(Filter filter, double t) {
  if (filter == Filter::kBilinear) return std::max(0.0, 1.0 - std::abs(t));
  return t > -0.5 && t <= 0.5 ? 1.0 : 0.0;
}

// Weights as integers that sum to one exactly: what is rounded is their running sum, so that errors cancel between
// neighbours, however many there are.
std::vector<int16_t> rounded(const std::vector<double>& weights) {
  double sum = 0;
  for (double weight : weights) sum += weight;
  std::vector<int16_t> result;
  result.reserve(weights.size());
  double running = 0;
  long before = 0;
  for (double weight : weights) {
    running += weight;
    const long now = std::lround(running / sum * kOne);
    result.push_back(static_cast<int16_t>(now - before));
    before = now;
  }
  return result;
}

}  // namespace

void Resampler::prepare(const Resampling& resampling) {
  const Box& output = resampling.output;
  const Region& source = resampling.source;
  if (!(source.width >= 1) || !(source.height >= 1) || output.width < 1 || output.height < 1 ||
      output.x < 0 || output.y < 0 || output.x + output.width > resampling.resized_width ||
      output.y + output.height > resampling.resized_height)
    throw InvalidArgument(
        fmt::format("resample: [{}, {}) x [{}, {}) of an image of {} x {} pixels that is resized to {} x {} "
                    "cannot be made",
                    output.x, output.x + output.width, output.y, output.y + output.height, source.width,
                    source.height, resampling.resized_width, resampling.resized_height));

  // Positions in the source count from `origin`, the first pixel that it touches.
  const auto spans_of = [&](double begin_of_source, double source_size, int origin, int resized, int first,
                            int count) {
    const int touched = static_cast<int>(std::ceil(begin_of_source + source_size)) - origin;
    const double offset = begin_of_source - origin;
    const double scale = source_size / resized, grown = std::max(scale, 1.0);
    const double support = (resampling.filter == Filter::kBilinear ? 1.0 : 0.5) * grown;
    std::vector<Span> spans(static_cast<size_t>(count));
    std::vector<double> weights;
    for (int i = 0; i < count; ++i) {
      const double centre = offset + (first + i + 0.5) * scale;
      const int begin = std::max(0, static_cast<int>(centre - support + 0.5));
      const int end = std::min(touched, static_cast<int>(centre + support + 0.5));
      weights.clear();
      for (int j = begin; j < end; ++j)
        weights.push_back(filter_value(resampling.filter, (j + 0.5 - centre) / grown));
      spans[static_cast<size_t>(i)] = {begin, rounded(weights)};
    }
    return spans;
  };
  const int origin_x = static_cast<int>(std::floor(source.x)),
            origin_y = static_cast<int>(std::floor(source.y));
  const auto columns =
      spans_of(source.x, source.width, origin_x, resampling.resized_width, output.x, output.width);
  const auto rows =
      spans_of(source.y, source.height, origin_y, resampling.resized_height, output.y, output.height);
  const auto end_of = [](const Span& span) { return span.begin + static_cast<int>(span.weights.size()); };
  const int left = columns.front().begin, top = rows.front().begin;
  needed_ = {origin_x + left, origin_y + top, end_of(columns.back()) - left, end_of(rows.back()) - top};

  width_ = output.width;
  height_ = output.height;
  next_row_ = 0;
  prepare_horizontal(columns, left, resampling.flip);
  prepare_vertical(rows, top);
  // Vectors of eight pixels read and write past the width.
  ring_stride_ = (static_cast<size_t>(width_) * kPixelBytes + kRowSlackBytes) / 32 * 32 + 32;
  ring_rows_ = vertical_.taps;
  ring_.resize(ring_stride_ * static_cast<size_t>(ring_rows_));
  out_.resize(ring_stride_);
}

void Resampler::prepare_horizontal(const std::vector<Span>& spans, int begin, bool flip) {
  size_t taps = 0;
  for (const Span& span : spans) taps = std::max(taps, span.weights.size());
  const size_t steps = (taps + kHorizontalStep - 1) / kHorizontalStep;
  horizontal_.taps = static_cast<int>(steps) * kHorizontalStep;
  horizontal_.first.resize(spans.size());
  // For each step of four weights a b c d: a b a b a b a b c d c d c d c d, as multiply-add takes them.
  horizontal_.weights.assign(spans.size() * steps * 16, 0);
  for (size_t i = 0; i < spans.size(); ++i) {
    const size_t x = flip ? spans.size() - 1 - i : i;
    // Where zeros behind the weights would reach past the row, the window moves left: zeros in front, then.
    const int start = spans[i].begin - begin;
    horizontal_.first[x] = std::max(0, std::min(start, needed_.width - horizontal_.taps));
    const auto shift = static_cast<size_t>(start - horizontal_.first[x]);
    int16_t* weights = &horizontal_.weights[x * steps * 16];
    for (size_t k = 0; k < spans[i].weights.size(); ++k) {
      const size_t tap = k + shift;
      for (size_t channel = 0; channel < 4; ++channel)
        weights[tap / 4 * 16 + tap % 4 / 2 * 8 + channel * 2 + tap % 2] = spans[i].weights[k];
    }
  }
}

void Resampler::prepare_vertical(const std::vector<Span>& spans, int begin) {
  size_t taps = 0;
  for (const Span& span : spans) taps = std::max(taps, span.weights.size());
  vertical_.taps = static_cast<int>(taps);
  vertical_.first.resize(spans.size());
  vertical_.weights.assign(spans.size() * taps, 0);
  last_row_.resize(spans.size());
  for (size_t i = 0; i < spans.size(); ++i) {
    vertical_.first[i] = spans[i].begin - begin;
    last_row_[i] = vertical_.first[i] + static_cast<int>(spans[i].weights.size()) - 1;
    std::copy(spans[i].weights.begin(), spans[i].weights.end(), &vertical_.weights[i * taps]);
  }
}

void Resampler::resample_row(const uint8_t* pixels, uint8_t* out) const {
  // Bytes of pixels p q r s to p0 q0 p1 q1 p2 q2 p3 q3 r0 s0 ...
  const __m128i pairs = _mm_setr_epi8(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15);
  const __m128i half = _mm_set1_epi32(kOne / 2);
  const int16_t* weights = horizontal_.weights.data();
  const int steps = horizontal_.taps / kHorizontalStep;
  for (int x = 0; x < width_; ++x) {
    const uint8_t* from =
        pixels + static_cast<size_t>(horizontal_.first[static_cast<size_t>(x)]) * kPixelBytes;
    __m256i sum = _mm256_setzero_si256();
    for (int step = 0; step < steps; ++step, from += 16, weights += 16) {
      const __m128i four = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
      const __m256i wide = _mm256_cvtepu8_epi16(_mm_shuffle_epi8(four, pairs));
      const __m256i scale = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(weights));
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(wide, scale));
    }
    __m128i total = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
    total = _mm_srai_epi32(_mm_add_epi32(total, half), kWeightBits);
    total = _mm_packs_epi32(total, total);
    const int pixel = _mm_cvtsi128_si32(_mm_packus_epi16(total, total));
    std::memcpy(out + static_cast<size_t>(x) * kPixelBytes, &pixel, sizeof pixel);
  }
}

void Resampler::combine_rows(int y) {
  const auto row = static_cast<size_t>(y);
  const int taps = last_row_[row] - vertical_.first[row] + 1;
  const int16_t* weights = &vertical_.weights[row * static_cast<size_t>(vertical_.taps)];
  row_pointers_.clear();
  for (int tap = 0; tap < taps; ++tap)
    row_pointers_.push_back(ring_.data() +
                            ring_stride_ * static_cast<size_t>((vertical_.first[row] + tap) % ring_rows_));
  const uint8_t* const* rows = row_pointers_.data();
  const __m256i zero = _mm256_setzero_si256(), half = _mm256_set1_epi32(kOne / 2);
  const auto bytes = static_cast<size_t>(width_) * kPixelBytes;
  for (size_t at = 0; at < bytes; at += 32) {
    __m256i sum0 = half, sum1 = half, sum2 = half, sum3 = half;
    for (int tap = 0; tap < taps; tap += 2) {
      const bool pair = tap + 1 < taps;
      const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[tap] + at));
      const __m256i b =
          pair ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[tap + 1] + at)) : zero;
      const int second = pair ? weights[tap + 1] : 0;
      const __m256i scale = _mm256_set1_epi32((second << 16) | (weights[tap] & 0xffff));
      const __m256i low = _mm256_unpacklo_epi8(a, b), high = _mm256_unpackhi_epi8(a, b);
      sum0 = _mm256_add_epi32(sum0, _mm256_madd_epi16(_mm256_unpacklo_epi8(low, zero), scale));
      sum1 = _mm256_add_epi32(sum1, _mm256_madd_epi16(_mm256_unpackhi_epi8(low, zero), scale));
      sum2 = _mm256_add_epi32(sum2, _mm256_madd_epi16(_mm256_unpacklo_epi8(high, zero), scale));
      sum3 = _mm256_add_epi32(sum3, _mm256_madd_epi16(_mm256_unpackhi_epi8(high, zero), scale));
    }
    const __m256i low =
        _mm256_packs_epi32(_mm256_srai_epi32(sum0, kWeightBits), _mm256_srai_epi32(sum1, kWeightBits));
    const __m256i high =
        _mm256_packs_epi32(_mm256_srai_epi32(sum2, kWeightBits), _mm256_srai_epi32(sum3, kWeightBits));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out_.data() + at), _mm256_packus_epi16(low, high));
  }
}

void Resampler::add_row(int y, const uint8_t* pixels, RowSink sink) {
  resample_row(pixels, ring_.data() + ring_stride_ * static_cast<size_t>(y % ring_rows_));
  for (; next_row_ < height_ && last_row_[static_cast<size_t>(next_row_)] <= y; ++next_row_) {
    combine_rows(next_row_);
    sink(next_row_, out_.data());
  }
}

Bitmap resample(const Bitmap& source, const Resampling& resampling) {
  const Region& box = resampling.source;
  if (box.x < 0 || box.y < 0 || box.x + box.width > source.width || box.y + box.height > source.height)
    throw InvalidArgument(
        fmt::format("resample: the box [{}, {}) x [{}, {}) is not inside the image of {} x {}", box.x,
                    box.x + box.width, box.y, box.y + box.height, source.width, source.height));
  Resampler resampler;
  resampler.prepare(resampling);
  Bitmap result(resampling.output.width, resampling.output.height);
  const Box needed = resampler.needed();
  std::vector<uint8_t> row(static_cast<size_t>(needed.width) * kPixelBytes + kRowSlackBytes);
  for (int y = 0; y < needed.height; ++y) {
    std::memcpy(row.data(), source.row(needed.y + y) + static_cast<size_t>(needed.x) * kPixelBytes,
                static_cast<size_t>(needed.width) * kPixelBytes);
    resampler.add_row(y, row.data(), [&](int out_y, const uint8_t* pixels) {
      std::memcpy(result.row(out_y), pixels, result.stride());
    });
  }
  return result;
}

}  // namespace mox::image
