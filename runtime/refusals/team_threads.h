// The threads of teams, asked for before libgomp makes them.
//
// libgomp makes the threads of a team when it first computes, keeps them for the next team of the same
// thread, and ends the process with a line of its own where the system refuses one. So who is about to
// compute asks first, and says what is missing.
#pragma once

#include "runtime/base/team.h"

namespace mox::internal {

// Throws FailedPrecondition where the system does not give so many teams of `size` threads, one of them the
// calling thread's, with what its earlier teams have left. They are to begin at once: others
// start threads, too.
void require_team_threads(int teams, int size);

// After the calling thread's team has begun: what libgomp keeps for it now.
void note_team_threads(int size);

// Makes the threads of the calling thread's team, unless it has them. Throws as require_team_threads. Any
// thread may call it at any time.
void start_team(const Team& team);

}  // namespace mox::internal
