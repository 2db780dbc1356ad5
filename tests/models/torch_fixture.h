// The formulas of tests/fixtures/make_torchvision_fixtures.py: values that need not be stored, and
// digests of results.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tensor/array.h"

namespace mox {

inline constexpr size_t kDigestProjections = 3;
inline constexpr size_t kDigestElements = 4;

// Norm, largest absolute value, projections on random signs, elements.
using Digest = std::array<double, 2 + kDigestProjections + kDigestElements>;

// float32 values in [low, high), a function of the name.
Array formula_uniform(std::string_view name, const Shape& shape, float low, float high);
// The value of a tensor of the state.
Array formula_state(std::string_view name, const Shape& shape, float lowest_offset);
// `batch` labels below `classes`, int64.
Array formula_labels(int64_t batch, int64_t classes);

Digest digest_of(std::string_view name, std::span<const float> values);

// The largest error of `value`, relative to the scale of the tensor that `truth` is of: norm and projections
// to its norm, the rest to its largest absolute value.
double digest_error(const Digest& value, const Digest& truth);

}  // namespace mox
