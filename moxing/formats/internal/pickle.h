// The pickles of CIFAR's Python version, and nothing else: dictionaries, lists, tuples, numbers, strings and
// NumPy arrays of whole numbers. A pickle is a program for a stack machine that may call any function; this
// reader knows the few calls that make an array, carries out none, and refuses every other.
//
// Accepts what Python 2's and Python 3's pickle modules and NumPy write for this structure in any of the
// protocols 0 to 5, with the memo, and no cycles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mox::data::internal {

struct PickledArray {
  std::vector<int64_t> shape;
  std::string bytes;  // uint8, row-major
};

// The dictionary's entries "data" and that of the labels, where they are there and such; others are left out.
struct PickledBatch {
  std::optional<PickledArray> data;
  std::optional<std::vector<int64_t>> labels;  // a list, or an array of one axis
};

// `labels` is the labels' key. Throws DataError with `name` and the offset.
PickledBatch read_pickle(std::span<const std::byte> content, std::string_view labels,
                         const std::string& name);

}  // namespace mox::data::internal
