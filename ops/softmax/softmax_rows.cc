#include "ops/softmax/softmax_rows.h"

#include "ops/support/exponential.h"
#include "ops/support/row_math.h"

namespace mox::internal {

namespace {

// buffer = exp(x - maximum) for rows that fit it together.
void shifted_exponentials(const float* x, int64_t rows, int64_t length, float* maxima, float* buffer) {
  for (int64_t row = 0; row < rows; ++row) {
    const float* from = x + row * length;
    float* to = buffer + row * length;
    const float maximum = maxima[row] = row_max(from, length);
    for (int64_t i = 0; i < length; ++i) to[i] = from[i] - maximum;
  }
  exp_in_place(buffer, rows * length);
}

// sum(exp(x - maximum)) of one row longer than the buffer; each part of the exponentials is handed to `use`.
template <typename Use>
float sum_of_long_row(const float* x, int64_t length, float maximum, Use use) {
  alignas(64) float buffer[kGroupElements];
  float sum = 0;
  for (int64_t begin = 0; begin < length; begin += kGroupElements) {
    const int64_t count = std::min(kGroupElements, length - begin);
    for (int64_t i = 0; i < count; ++i) buffer[i] = x[begin + i] - maximum;
    exp_in_place(buffer, count);
    sum += row_sum(buffer, count);
    use(buffer, begin, count);
  }
  return sum;
}

}  // namespace

void row_statistics(const float* x, int64_t rows, int64_t length, float* maxima, float* log_sums) {
  alignas(64) float buffer[kGroupElements];
  alignas(64) float sums[kGroupRows];
  if (length <= kGroupElements) {
    shifted_exponentials(x, rows, length, maxima, buffer);
    for (int64_t row = 0; row < rows; ++row) sums[row] = row_sum(buffer + row * length, length);
  } else {
    maxima[0] = row_max(x, length);
    sums[0] = sum_of_long_row(x, length, maxima[0], [](const float*, int64_t, int64_t) {});
  }
  log_in_place(sums, rows);
  std::copy(sums, sums + rows, log_sums);
}

void softmax_rows(const float* x, int64_t rows, int64_t length, float* y) {
  if (length > kGroupElements) {
    const float sum =
        sum_of_long_row(x, length, row_max(x, length),
                        [&](const float* part, int64_t at, int64_t n) { std::copy(part, part + n, y + at); });
    const float scale = 1 / sum;
    for (int64_t i = 0; i < length; ++i) y[i] *= scale;
    return;
  }
  alignas(64) float buffer[kGroupElements];
  float maxima[kGroupRows];
  shifted_exponentials(x, rows, length, maxima, buffer);
  for (int64_t row = 0; row < rows; ++row) {
    const float* from = buffer + row * length;
    const float scale = 1 / row_sum(from, length);
    for (int64_t i = 0; i < length; ++i) y[row * length + i] = from[i] * scale;
  }
}

void softmax_from_statistics(const float* x, int64_t rows, int64_t length, const float* maxima,
                             const float* log_sums, float* y) {
  alignas(64) float buffer[kGroupElements];
  // One row longer than the buffer, or several that fit it: either way a run of elements cut by the buffer.
  for (int64_t begin = 0; begin < length; begin += kGroupElements) {
    const int64_t count = std::min(kGroupElements, length - begin);
    for (int64_t row = 0; row < rows; ++row) {
      const float* from = x + row * length + begin;
      float* to = buffer + row * count;
      const float maximum = maxima[row], log_sum = log_sums[row];
      for (int64_t i = 0; i < count; ++i) to[i] = (from[i] - maximum) - log_sum;
    }
    exp_in_place(buffer, rows * count);
    for (int64_t row = 0; row < rows; ++row)
      std::copy(buffer + row * count, buffer + (row + 1) * count, y + row * length + begin);
  }
}

}  // namespace mox::internal
