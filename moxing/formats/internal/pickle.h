// The pickles of CIFAR's Python version, and nothing else: dictionaries, lists, tuples, numbers, strings and
// NumPy arrays of whole numbers. A pickle is a program for a stack machine that may call any function; this
// reader knows the few calls that make an array, carries out none, and refuses every other.
//
// Accepts what Python 2's and Python 3's pickle modules and NumPy write for this structure in any of the
// protocols 0 to 5, with the memo, and no cycles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace mox::data::internal {

struct PickledArray {
  std::vector<int64_t> shape;
  std::string bytes;  // uint8, row-major
};

// The entries "data", "labels" and "fine_labels" of the dictionary, those that are there; others are left
// out. An array of one axis is a list, too.
struct PickledBatch {
  std::map<std::string, std::vector<int64_t>> lists;
  std::map<std::string, PickledArray> arrays;
};

// Throws DataError with `name` and the offset.
PickledBatch read_pickle(std::span<const std::byte> content, const std::string& name);

}  // namespace mox::data::internal
