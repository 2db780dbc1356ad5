// Whether a data set comes in an order of its own.
#pragma once

#include "runtime/data/dataset.h"

namespace mox {

// Whether a shuffle gives the elements an order that changes from pass to pass, so that the n-th one is not
// the n-th of what was shuffled. Not of shuffle_once, nor below a cache.
bool is_shuffled(const Dataset& dataset);

}  // namespace mox
