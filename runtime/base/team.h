// The compute threads of one device.
//
// A device is a fixed set of cores with one team. oneDNN's primitives and our own loops run on the same team
// (the libgomp pool of the device's thread), so nothing oversubscribes. A team of one runs everything inline:
// no pool, no barrier.
//
// Work is cut into more pieces than there are threads. Each thread has a range of them, the same in every
// call of one size (what it wrote in one call is in its caches in the next), and takes from others' ranges
// when its own is done: cores that are slower for a while, because of what else runs on their machine, hold
// up nobody.
//
// Determinism: `parallel_for` hands out contiguous pieces whose borders depend on the number of threads, and
// which thread takes one depends on the moment. A body that writes each output element from its own inputs is
// therefore exact on any team. A body that reduces must cut its sum by problem size, never by thread: use
// `parallel_chunks`, whose chunk borders depend only on `count` and `chunk`.
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

  // body(begin, end) for pieces that make up [0, count), of about `grain` or more each; returns when all are
  // done. Runs inline when one piece is enough. The body must not throw.
  void parallel_for(int64_t count, int64_t grain, FunctionRef<void(int64_t begin, int64_t end)> body) const;

  // The same, but each thread begins with the last piece of its range: behind a parallel_for of the same size
  // that is the one of which its caches hold most.
  void parallel_for_backwards(int64_t count, int64_t grain,
                              FunctionRef<void(int64_t begin, int64_t end)> body) const;

  // parallel_for, for bodies that need memory to work in: calls that run at the same time have different
  // `thread`, below size() and below the number of pieces, which is count / grain at most, rounded up.
  void parallel_for_by_thread(int64_t count, int64_t grain,
                              FunctionRef<void(int thread, int64_t begin, int64_t end)> body) const;

  // Once on each thread, at the same time.
  void on_each_thread(FunctionRef<void()> body) const;

  // body(index, begin, end) for every chunk of exactly `chunk` elements of [0, count) (the last
  // may be shorter).
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

}  // namespace mox
