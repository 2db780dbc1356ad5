// The compute threads of one device.
//
// A device is a fixed set of cores with one team. oneDNN's primitives and our own loops run on the same team
// (the libgomp pool of the device's thread), so nothing oversubscribes. A team of one runs everything inline:
// no pool, no barrier.
//
// Determinism: `parallel_for` hands out contiguous chunks whose borders depend on the number of threads. A
// body that writes each output element from its own inputs is therefore exact on any team. A body that
// reduces must cut its sum by problem size, never by thread: use `parallel_chunks`, whose chunk borders
// depend only on `count` and `chunk`.
//
// Threads: a team belongs to the thread that calls it; calls do not nest.
#pragma once

#include <cstdint>

#include "runtime/base/function_ref.h"

namespace mox {

class Team {
 public:
  // `threads` >= 1. What oneDNN computes on the calling thread follows `enter` alone.
  explicit Team(int threads = 1);

  int size() const { return threads_; }

  // Binds the calling thread to this team's size for oneDNN (an OpenMP per-thread setting). A device's thread
  // calls it once before it compiles or runs a plan.
  void enter() const;

  // body(begin, end) over [0, count), in equal chunks: one a thread, but not more than count / grain, rounded up; returns when
  // all are done. Runs inline when one chunk is enough. The body must not throw.
  void parallel_for(int64_t count, int64_t grain, FunctionRef<void(int64_t begin, int64_t end)> body) const;

  // body(index, begin, end) for every chunk of exactly `chunk` elements of [0, count) (the last may be
  // shorter).
  void parallel_chunks(int64_t count, int64_t chunk,
                       FunctionRef<void(int64_t index, int64_t begin, int64_t end)> body) const;

 private:
  int threads_;
};

// Enters the team for as long as it lives; then the calling thread has the size that it had before.
class EnteredTeam {
 public:
  explicit EnteredTeam(const Team& team);
  ~EnteredTeam();
  EnteredTeam(const EnteredTeam&) = delete;
  EnteredTeam& operator=(const EnteredTeam&) = delete;

 private:
  int previous_;
};

// The number of threads that oneDNN's calls from this thread use: that of the team entered last.
int entered_threads();

// The number of cores this process may use: the affinity mask, cut by the cgroup's CPU quota. At least 1.
int available_cores();

}  // namespace mox
