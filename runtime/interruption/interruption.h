// Work that takes long looks for a wish to stop where it can end without harm: between the nodes of a graph
// that is built or compiled, between passes of a trial, while it waits for a batch.
#pragma once

#include <atomic>

namespace mox::internal {

// Thrown where work ends for such a wish. No std::exception: what handles errors, and names what they are of,
// lets it pass.
struct Interrupted {};

// While alive, throw_if_interrupted in the calling thread throws once `wish`, which must outlive it, is not
// 0. Without one it does nothing, as in threads that help this one. They nest; the innermost counts.
class Interruptible {
 public:
  explicit Interruptible(const std::atomic<int>& wish);
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  const std::atomic<int>* const outer_;
};

// Throws Interrupted (see there). Takes nanoseconds.
void throw_if_interrupted();

}  // namespace mox::internal
