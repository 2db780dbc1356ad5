// What all reductions can be told.
#pragma once

#include <cstdint>
#include <vector>

namespace mox {

struct ReduceOptions {
  std::vector<int64_t> axes =
      {};                  // to reduce, counted from the end if negative, each once; none named: all axes
  bool keep_dims = false;  // leave the reduced axes in the shape with an extent of 1
};

}  // namespace mox
