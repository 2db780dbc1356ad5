// What shuffles do to the order of a data set.
#pragma once

#include "runtime/data/dataset.h"

namespace mox {

// Whether a shuffle gives the elements an order that changes from pass to pass, so that the n-th one is not
// the n-th of what was shuffled. Not of shuffle_once, nor below a cache.
bool is_shuffled(const Dataset& dataset);

// Whether a shuffle above a repeat draws from several passes at once, so that the first epoch_size() elements
// are no pass: some elements are among them twice, and others not at all.
bool mixes_passes(const Dataset& dataset);

}  // namespace mox
