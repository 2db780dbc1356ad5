#include "moxing/image/resample.h"

#include <fmt/format.h>
#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/base/error.h"

namespace mox::image {

namespace {

constexpr int kWeightBits = 14;
constexpr int kOne = 1 << kWeightBits;
constexpr int kStep = 4;   // source pixels that one vector holds
constexpr int kGroup = 4;  // output pixels that are made together

double filter_value(Filter filter, double t) {
  if (filter == Filter::kBilinear) return std::max(0.0, 1.0 - std::abs(t));
  return t > -0.5 && t <= 0.5 ? 1.0 : 0.0;
}

// Weights as integers that sum to one exactly: what is rounded is their running sum, so that errors cancel between
// neighbours, however many there are.
void round_weights(const std::vector<double>& exact, int16_t* weights) {
  double sum = 0;
  for (double weight : exact) sum += weight;
  double running = 0;
  int before = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    running += exact[i];
    const int now = static_cast<int>(running / sum * kOne + 0.5);
    weights[i] = static_cast<int16_t>(now - before);
    before = now;
  }
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

  // Positions in the source count from its first pixel that is touched, then from the first that is needed.
  const auto touched = [](double begin, double size) {
    return static_cast<int>(std::ceil(begin + size)) - static_cast<int>(std::floor(begin));
  };
  const int origin_x = static_cast<int>(std::floor(source.x)),
            origin_y = static_cast<int>(std::floor(source.y));
  width_ = output.width;
  height_ = output.height;
  next_row_ = 0;
  prepare_axis(&horizontal_, resampling.filter, source.x - origin_x, source.width,
               touched(source.x, source.width), resampling.resized_width, output.x, width_);
  prepare_axis(&vertical_, resampling.filter, source.y - origin_y, source.height,
               touched(source.y, source.height), resampling.resized_height, output.y, height_);
  const int left = horizontal_.first.front(), top = vertical_.first.front();
  for (int& first : horizontal_.first) first -= left;
  for (int& first : vertical_.first) first -= top;
  needed_ = {origin_x + left, origin_y + top, horizontal_.end(static_cast<size_t>(width_ - 1)),
             vertical_.end(static_cast<size_t>(height_ - 1))};
  prepare_groups(resampling.flip);
  // Vectors of eight pixels read and write past the width.
  ring_stride_ = (static_cast<size_t>(width_) * kPixelBytes + kRowSlackBytes) / 32 * 32 + 32;
  ring_rows_ = vertical_.taps;
  ring_.resize(ring_stride_ * static_cast<size_t>(ring_rows_));
  out_.resize(ring_stride_);
}

void Resampler::prepare_axis(Axis* axis, Filter filter, double offset, double source_size, int touched,
                             int resized, int begin, int size) {
  const double scale = source_size / resized, grown = std::max(scale, 1.0);
  const double support = (filter == Filter::kBilinear ? 1.0 : 0.5) * grown;
  const auto outputs = static_cast<size_t>(size);
  axis->first.resize(outputs);
  axis->count.resize(outputs);
  axis->taps = 0;
  const auto centre = [&](size_t i) { return offset + (begin + static_cast<double>(i) + 0.5) * scale; };
  for (size_t i = 0; i < outputs; ++i) {
    axis->first[i] = std::max(0, static_cast<int>(centre(i) - support + 0.5));
    axis->count[i] = std::min(touched, static_cast<int>(centre(i) + support + 0.5)) - axis->first[i];
    axis->taps = std::max(axis->taps, axis->count[i]);
  }
  axis->stride = (axis->taps + 1) / 2 * 2;
  axis->weights.assign(outputs * static_cast<size_t>(axis->stride), 0);
  for (size_t i = 0; i < outputs; ++i) {
    exact_weights_.clear();
    for (int j = axis->first[i]; j < axis->end(i); ++j)
      exact_weights_.push_back(filter_value(filter, (j + 0.5 - centre(i)) / grown));
    round_weights(exact_weights_, &axis->weights[i * static_cast<size_t>(axis->stride)]);
  }
}

void Resampler::prepare_groups(bool flip) {
  const auto width = static_cast<size_t>(width_), taps = static_cast<size_t>(horizontal_.taps),
             stride = static_cast<size_t>(horizontal_.stride);
  const size_t groups = (width + kGroup - 1) / kGroup, steps = (taps + kStep - 1) / kStep;
  steps_ = static_cast<int>(steps);
  group_first_.assign(groups * kGroup, 0);
  // A step of a group is four vectors: weights a b of output pixels 0 and 2 (a b a b a b a b of each, as multiply-add takes
  // them for four channels), weights c d of the same, then both of pixels 1 and 3.
  group_weights_.assign(groups * steps * kGroup * 16, 0);
  for (size_t i = 0; i < width; ++i) {
    const size_t x = flip ? width - 1 - i : i;
    // Where zeros behind the weights would reach past the row, the window moves left: zeros in front, then.
    const int start = horizontal_.first[i];
    group_first_[x] = std::max(0, std::min(start, needed_.width - steps_ * kStep));
    const auto shift = static_cast<size_t>(start - group_first_[x]);
    const size_t pixel = x % kGroup;
    int16_t* weights = &group_weights_[x / kGroup * steps * kGroup * 16 + pixel % 2 * 32 + pixel / 2 * 8];
    for (size_t k = 0; k < static_cast<size_t>(horizontal_.count[i]); ++k) {
      const size_t tap = k + shift;
      for (size_t channel = 0; channel < 4; ++channel)
        weights[tap / 4 * kGroup * 16 + tap % 4 / 2 * 16 + channel * 2 + tap % 2] =
            horizontal_.weights[i * stride + k];
    }
  }
}

// kSteps 0: as many as `steps_` says.
template <int kSteps>
void Resampler::resample_row(const uint8_t* pixels, uint8_t* out) const {
  // Bytes of pixels p q r s to 16 bits: p0 q0 p1 q1 p2 q2 p3 q3, and r0 s0 ...
  const __m256i front =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, -1, 4, -1, 1, -1, 5, -1, 2, -1, 6, -1, 3, -1, 7, -1));
  const __m256i back = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(8, -1, 12, -1, 9, -1, 13, -1, 10, -1, 14, -1, 11, -1, 15, -1));
  const __m256i half = _mm256_set1_epi32(kOne / 2);
  const int steps = kSteps > 0 ? kSteps : steps_, width = width_;
  const int16_t* weights = group_weights_.data();
  const int* first = group_first_.data();
  const auto add = [&](__m256i sum, const uint8_t* a, const uint8_t* b, const int16_t* scale) {
    const __m256i both =
        _mm256_loadu2_m128i(reinterpret_cast<const __m128i*>(b), reinterpret_cast<const __m128i*>(a));
    const auto* scales = reinterpret_cast<const __m256i*>(scale);
    sum = _mm256_add_epi32(sum,
                           _mm256_madd_epi16(_mm256_shuffle_epi8(both, front), _mm256_loadu_si256(scales)));
    return _mm256_add_epi32(
        sum, _mm256_madd_epi16(_mm256_shuffle_epi8(both, back), _mm256_loadu_si256(scales + 1)));
  };
  for (int x = 0; x < width; x += kGroup, first += kGroup) {
    __m256i even = half, odd = half;
    for (int step = 0; step < steps; ++step, weights += kGroup * 16) {
      const uint8_t* from = pixels + static_cast<ptrdiff_t>(step) * kStep * kPixelBytes;
      const auto at = [&](int i) { return from + static_cast<ptrdiff_t>(first[i]) * kPixelBytes; };
      even = add(even, at(0), at(2), weights);
      odd = add(odd, at(1), at(3), weights + 32);
    }
    const __m256i sums =
        _mm256_packs_epi32(_mm256_srai_epi32(even, kWeightBits), _mm256_srai_epi32(odd, kWeightBits));
    const __m256i four = _mm256_permute4x64_epi64(_mm256_packus_epi16(sums, sums), 0b1000);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + static_cast<ptrdiff_t>(x) * kPixelBytes),
                     _mm256_castsi256_si128(four));
  }
}

// kPairs: of rows; 0: as many as `pairs` says.
template <int kPairs>
void Resampler::combine(const uint8_t* const* rows, const int16_t* weights, int pairs) {
  const __m256i zero = _mm256_setzero_si256(), half = _mm256_set1_epi32(kOne / 2);
  const int count = kPairs > 0 ? kPairs : pairs;
  const auto bytes = static_cast<size_t>(width_) * kPixelBytes;
  for (size_t at = 0; at < bytes; at += 32) {
    __m256i sum0 = half, sum1 = half, sum2 = half, sum3 = half;
    for (int pair = 0; pair < count; ++pair) {
      const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[2 * pair] + at));
      const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[2 * pair + 1] + at));
      int two_weights;
      std::memcpy(&two_weights, weights + 2 * pair, sizeof two_weights);
      const __m256i scale = _mm256_set1_epi32(two_weights);
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

void Resampler::combine_rows(int y) {
  const auto row = static_cast<size_t>(y);
  // In pairs: an odd one's partner is itself, with the weight 0 that lies behind its own.
  const int taps = vertical_.count[row], pairs = (taps + 1) / 2;
  row_pointers_.clear();
  for (int tap = 0; tap < 2 * pairs; ++tap)
    row_pointers_.push_back(
        ring_.data() +
        ring_stride_ * static_cast<size_t>((vertical_.first[row] + std::min(tap, taps - 1)) % ring_rows_));
  const int16_t* weights = &vertical_.weights[row * static_cast<size_t>(vertical_.stride)];
  if (pairs == 1)
    combine<1>(row_pointers_.data(), weights, pairs);
  else if (pairs == 2)
    combine<2>(row_pointers_.data(), weights, pairs);
  else
    combine<0>(row_pointers_.data(), weights, pairs);
}

void Resampler::add_row(int y, const uint8_t* pixels, RowSink sink) {
  uint8_t* const row = ring_.data() + ring_stride_ * static_cast<size_t>(y % ring_rows_);
  if (steps_ == 1)
    resample_row<1>(pixels, row);
  else if (steps_ == 2)
    resample_row<2>(pixels, row);
  else
    resample_row<0>(pixels, row);
  for (; next_row_ < height_ && vertical_.end(static_cast<size_t>(next_row_)) <= y + 1; ++next_row_) {
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
