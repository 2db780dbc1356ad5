// That all ranks run the same thing, found out before the first step.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/comm/communicator.h"

namespace mox::internal {

// What decides the result of a run, by name: "configuration" -> "batch_size: 32", ...; several may have the
// same name.
using JobFacts = std::vector<std::pair<std::string, std::string>>;

// The facts that are the same in every process that runs the same build of the same program. Compared before
// anything else: other builds may do other things together.
JobFacts facts_of_build();
// The processor; that of another rank may be another one, which is worth a word.
std::string processor_model();

// Compares the facts of all ranks; if those of one differ from rank 0's, throws FailedPrecondition on rank 0,
// naming both ranks and the first difference, and does not return on the others, which end with the job.
void require_agreement(Communicator& ranks, const JobFacts& facts);

// Logs, on rank 0, which rank has another processor than rank 0: with the same instructions, too, its kernels
// may cut sums differently, by the sizes of its caches for one. `own`: this rank's.
void mention_other_processors(Communicator& ranks, const std::string& own);
// Logs that the checkpoint `path` was computed on something else than `now`, if `before` is known
// and differs.
void mention_processor_of(const std::string& path, const std::string& before, const std::string& now);

}  // namespace mox::internal
