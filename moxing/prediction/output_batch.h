// What a model has computed for one batch, as output_fn and prediction files get it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/tensor/array.h"

namespace mox {

// The values of ModelSpec::output_info in order, each a name and an array with one row a sample; and which
// samples these are.
struct OutputBatch : std::vector<std::pair<std::string, Array>> {
  using std::vector<std::pair<std::string, Array>>::vector;

  // In PREDICT: the number of the first sample, counted from 0 in the order of the data; the others follow
  // it. In TRAIN, whose order is shuffled: -1.
  int64_t first_sample = -1;
  // In PREDICT: what the data set calls each sample, mostly the path of its file; empty if it has no names.
  std::vector<std::string> sample_names = {};

  int64_t samples() const { return empty() ? 0 : front().second.shape()[0]; }
  // The values of that name; throws NotFound, naming those there are.
  const Array& array(std::string_view name) const;

  // As bytes for another process of the same build, and back. Throws DataError for what no batch is.
  std::string to_bytes() const;
  static OutputBatch from_bytes(std::string_view bytes);
};

// Gets what has been computed since the last call, in order; the arrays are the receiver's.
using OutputFn = std::function<void(std::span<const OutputBatch> batches)>;

}  // namespace mox
