// Short turns on the cores for threads that wait for each other.
//
// Where other work has the same cores, a thread that is woken waits until the other's turn ends, some
// milliseconds, and so do all that wait for it. From Linux 6.12 on a thread may ask for shorter turns
// (sched_setattr, sched_runtime): it has the same share of a core in more and smaller parts, and of two
// threads that may run the one with the shorter turn goes first. Earlier systems take no notice. Nothing
// changes on cores of its own, and no result depends on it.
//
// Threads: all are about the calling thread, whose later threads begin with its turns.
#pragma once

#include <chrono>

namespace mox::internal {

// Asks for turns of a tenth of a millisecond, the shortest that Linux gives. Does nothing for a thread whose
// user has set another class of scheduling (SCHED_FIFO, SCHED_IDLE), or where the system refuses.
void take_short_turns();
// Back to the system's own.
void take_usual_turns();
bool has_short_turns();

// The length of the calling thread's turns; 0 where the system does not say.
std::chrono::nanoseconds length_of_turns();

}  // namespace mox::internal
