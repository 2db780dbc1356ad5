#include "moxing/engine/session/internal/shared_findings.h"

#include <exception>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/data/findings.h"

namespace mox::internal {

void share_findings(Communicator& ranks, const Dataset& dataset, const std::string& own) {
  if (ranks.size() == 1) return;
  // Two rounds: a source tells of its good samples once it knows of a bad one, and that may be another
  // rank's. A rank that finds a limit passed goes through both, since the others wait for it in them.
  constexpr int kRounds = 2;
  std::exception_ptr error;
  std::string found = own;
  for (int round = 0; round < kRounds; ++round) {
    const std::vector<std::string> all = ranks.allgather(found);
    for (int rank = 0; rank < ranks.size(); ++rank) {
      if (rank == ranks.rank()) continue;
      try {
        add_findings(dataset, all[rank]);
      } catch (const DataError&) {
        if (!error) error = std::current_exception();
      }
    }
    found = take_findings(dataset);
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace mox::internal
