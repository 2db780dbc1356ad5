// A checkpoint that rank 0 has read, for all ranks: only one process needs to see the disk.
#pragma once

#include "moxing/checkpoint/checkpoint.h"
#include "runtime/comm/communicator.h"

namespace mox::internal {

// All ranks' `checkpoint` becomes that of rank 0.
void broadcast_checkpoint(Communicator& ranks, Checkpoint* checkpoint);

}  // namespace mox::internal
