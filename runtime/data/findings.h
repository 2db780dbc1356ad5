// What the sources of a data set have found out while they were read (RandomAccessSource::take_findings),
// from one rank to the others: each reads a part of the samples, and limits hold for all of them.
#pragma once

#include <string>
#include <string_view>

#include "runtime/data/dataset.h"

namespace mox {

// What is new in this process since the last call, for add_findings of the same data set in other processes;
// "" if nothing is.
std::string take_findings(const Dataset& dataset);

// Throws what the sources throw, and DataError for findings of another data set.
void add_findings(const Dataset& dataset, std::string_view findings);

}  // namespace mox
