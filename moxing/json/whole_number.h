// Whole numbers in JSON from files that others may have written.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/base/error.h"

namespace mox {

// No count of a run comes near it: two of them are added, and one is doubled, without an overflow.
inline constexpr int64_t kLargestCount = int64_t{1} << 61;

// Throws DataError, which names both, for what is no whole number in least...most: the library's own
// conversion cuts off what does not fit, and is undefined for large fractions.
template <std::integral T, typename Json>
T whole_number(const Json& value, T least = 0, T most = std::numeric_limits<T>::max()) {
  const auto is_within = [&](auto number) {
    return std::cmp_greater_equal(number, least) && std::cmp_less_equal(number, most);
  };
  const bool fits = value.is_number_unsigned()  ? is_within(value.template get<uint64_t>())
                    : value.is_number_integer() ? is_within(value.template get<int64_t>())
                                                : false;
  if (!fits)
    throw DataError(
        fmt::format("expected a whole number in {}...{}, got {:.100}", least, most, value.dump()));
  return value.template get<T>();
}

// How many of something.
template <typename Json>
int64_t count_in(const Json& value) {
  return whole_number<int64_t>(value, 0, kLargestCount);
}

}  // namespace mox
