// Which instructions all ranks of a job compute with.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ops/processor/instruction_set.h"

namespace mox::internal {

struct RankInstructions {
  std::string host;
  InstructionSet available;
};

struct InstructionChoice {
  InstructionSet set;
  // What cannot be kept equal, or costs something: a sentence each, to be logged as the run starts.
  std::vector<std::string> remarks;
};

// The largest set that all ranks have; or `kept`, that of the checkpoint `path` which the run goes on from,
// where all ranks have it and `allow_inexact` is not set.
InstructionChoice choose_instruction_set(std::span<const RankInstructions> ranks,
                                         std::optional<InstructionSet> kept, const std::string& path,
                                         bool allow_inexact);

}  // namespace mox::internal
