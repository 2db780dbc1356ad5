// What the library, the configuration and the data of a run say about it, in the form in which
// ranks compare it.
#pragma once

#include <string>

#include "runtime/data/dataset.h"
#include "runtime/job/agreement.h"

namespace mox::internal {

// The facts that are the same in every process that computes with the same library (compute_library.h).
// Compared with those of the build.
JobFacts facts_of_compute_library();
// The facts that are the same in every process that runs with the same options. Compared next: what ranks do
// together depends on them.
JobFacts facts_of_configuration();
// The facts that are the same in every process that has the same data: each takes its share of the batches.
JobFacts facts_of_data(const Dataset& batches);

// The processor and the library that compute, as checkpoints have it: "AMD EPYC, oneDNN 3.7.2".
std::string computed_by();

}  // namespace mox::internal
