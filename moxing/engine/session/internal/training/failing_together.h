// An error of one rank that all ranks learn of between two steps, where each holds the same finished state.
#pragma once

#include <exception>

#include "runtime/base/function_ref.h"
#include "runtime/comm/communicator.h"

namespace mox::internal {

// Whether any rank has an error (`own`: this one's, or null). All ranks call it together.
bool any_has_failed(Communicator& ranks, const std::exception_ptr& own);

// What all ranks call then: `keep` saves what was trained, and when it has done so on all ranks, those that
// have an error throw it, which ends the job; the others wait for that end.
[[noreturn]] void fail_together(Communicator& ranks, const std::exception_ptr& own, FunctionRef<void()> keep);

}  // namespace mox::internal
