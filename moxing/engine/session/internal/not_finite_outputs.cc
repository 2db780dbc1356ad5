#include "moxing/engine/session/internal/not_finite_outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/base/log.h"

namespace mox::internal {
namespace {

template <typename T>
bool is_finite_row(const Array& array, size_t row, size_t rows) {
  const auto values = array.values<T>();
  const size_t width = values.size() / rows;
  return std::ranges::all_of(values.subspan(row * width, width),
                             [](T value) { return std::isfinite(static_cast<float>(value)); });
}

bool is_finite_in(const Array& array, size_t row, size_t rows) {
  if (array.dtype() == DType::kFloat32) return is_finite_row<float>(array, row, rows);
  return array.dtype() != DType::kBFloat16 || is_finite_row<BFloat16>(array, row, rows);
}

}  // namespace

void NotFiniteOutputs::look_at(const OutputBatch& batch) {
  const size_t rows = batch.samples();
  samples_ += batch.samples();
  for (size_t row = 0; row < rows; ++row)
    for (const auto& [name, array] : batch) {
      if (is_finite_in(array, row, rows)) continue;
      if (++not_finite_ == 1)
        first_ = fmt::format("'{}' of sample {}{}", name, batch.first_sample + static_cast<int64_t>(row),
                             batch.sample_names.empty() ? "" : fmt::format(", {}", batch.sample_names[row]));
      break;
    }
}

void NotFiniteOutputs::report() const {
  if (not_finite_ == 0) return;
  log_warning(fmt::format(
      "the predictions of {} of {} samples are not finite (the first: {}): nor is what was made of them, such "
      "as a class, an answer. Mostly numbers of the input are far from all of the training's",
      not_finite_, samples_, first_));
}

}  // namespace mox::internal
