// The pickles of CIFAR's Python version, protocol 2, and nothing else: dictionaries, lists, tuples, numbers,
// strings and NumPy arrays of uint8. A pickle is a program for a stack machine that may call any function;
// this reader knows the three calls that make an array, carries out none, and refuses every other.
//
// Accepts what Python 2's and Python 3's pickle modules write for this structure, with the memo, and no
// cycles.
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
// out.
struct PickledBatch {
  std::map<std::string, std::vector<int64_t>> lists;
  std::map<std::string, PickledArray> arrays;
};

// Throws DataError with `name` and the offset.
PickledBatch read_pickle(std::span<const std::byte> content, const std::string& name);

}  // namespace mox::data::internal
