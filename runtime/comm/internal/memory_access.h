// Whether the processes of one machine may read each other's memory, which is how Open MPI moves large
// messages between them where nothing else is said. A container without the right to trace forbids it: then
// each such message fails with a line of Open MPI's.
#pragma once

#include <string>

namespace mox::internal {

// Asks the kernel, by a process made for it that tries to read this one. "" if it may, else
// the system's reason.
std::string why_memory_cannot_be_read();

// Chooses messages through shared memory (copied in and out) for the MPI that this process starts next, if
// memory cannot be read and the environment has made no choice. Returns the reason, "" if nothing was
// to be done.
std::string choose_single_copy_mechanism();

}  // namespace mox::internal
