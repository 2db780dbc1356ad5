// What the configuration and the data of a run say about it, in the form in which ranks compare it.
#pragma once

#include "runtime/data/dataset.h"
#include "runtime/job/agreement.h"

namespace mox::internal {

// The facts that are the same in every process that runs with the same options. Compared next: what ranks do
// together depends on them.
JobFacts facts_of_configuration();
// The facts that are the same in every process that has the same data: each takes its share of the batches.
JobFacts facts_of_data(const Dataset& batches);

}  // namespace mox::internal
