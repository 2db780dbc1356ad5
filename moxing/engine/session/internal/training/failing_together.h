// An error of one rank that all ranks learn of between two steps, where each holds the same finished state.
#pragma once

#include <exception>
#include <string>

#include "runtime/base/function_ref.h"
#include "runtime/comm/communicator.h"
#include "runtime/data/dataset.h"

namespace mox::internal {

// Whether any rank has an error (`own`: this one's, or null). All ranks call it together.
bool any_has_failed(Communicator& ranks, const std::exception_ptr& own);

// What all ranks call then: `keep` saves what was trained, and when it has done so on all ranks, those that
// have an error throw it, which ends the job; the others wait for that end.
[[noreturn]] void fail_together(Communicator& ranks, const std::exception_ptr& own, FunctionRef<void()> keep);

// What each rank has found in `dataset` since the last call (`own`: this one's take_findings) becomes known
// to all. All ranks call it together, between two steps or at the end of a pass. Where the counts of all
// ranks are above a limit, every rank throws the same DataError.
void share_findings(Communicator& ranks, const Dataset& dataset, const std::string& own);

}  // namespace mox::internal
