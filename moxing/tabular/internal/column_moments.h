// What normalisation needs to know of a column of numbers, and whether it suits the column.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "moxing/tabular/table_schema.h"

namespace mox::internal {

// Mean and deviation (of the values themselves, not of a larger population), in float64; a deviation of 1 for
// equal values. Infinite where the squares are. At least one value.
TableMoments moments_of(const std::vector<double>& values);

bool are_equal(const std::vector<double>& values);

// Where a few numbers lie so far from the others that the deviation is theirs, and after normalisation the
// others differ by less than a thousandth: a sentence that says so with numbers. Values that stand for
// missing ones, and slips of a decimal point, look like this; columns of which most values are equal
// do not count.
std::optional<std::string> far_numbers(const std::vector<double>& values, const TableMoments& moments);

}  // namespace mox::internal
