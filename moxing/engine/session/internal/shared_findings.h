// What each rank of a job has found out about samples while it read its part of them, told to all.
#pragma once

#include <string>

#include "runtime/comm/communicator.h"
#include "runtime/data/dataset.h"

namespace mox::internal {

// What each rank has found in `dataset` since the last call (`own`: this one's take_findings) becomes known
// to all. All ranks call it together, between two steps or at the end of a pass. Throws DataError, after all
// that the ranks say to each other, where the counts of all ranks are above a limit: every rank then knows of
// the same samples.
void share_findings(Communicator& ranks, const Dataset& dataset, const std::string& own);

}  // namespace mox::internal
