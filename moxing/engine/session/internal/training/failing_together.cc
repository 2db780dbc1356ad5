#include "moxing/engine/session/internal/training/failing_together.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace mox::internal {

bool any_has_failed(Communicator& ranks, const std::exception_ptr& own) {
  if (ranks.size() == 1) return own != nullptr;
  const auto failed = ranks.allgather_equal(own ? "1" : "0");
  return std::ranges::find(failed, "1") != failed.end();
}

void fail_together(Communicator& ranks, const std::exception_ptr& own, FunctionRef<void()> keep) {
  keep();
  if (ranks.size() > 1) ranks.allgather_equal("kept");
  if (own) std::rethrow_exception(own);
  ranks.allgather_equal("over");  // in which those that have failed take no part
  throw FailedPrecondition("another rank has failed and has not ended the job");
}

}  // namespace mox::internal
