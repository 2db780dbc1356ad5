// A stretch of a model that is computed again in the backward pass instead of kept for it: what
// var_scope(name, {.recompute = true}) does, without a name.
#pragma once

#include <memory>

namespace mox {

// While alive, what is made on this thread belongs to one recomputed stretch (docs/recomputation.md); inside
// of another such scope, to that one. `on` false: nothing happens. Throws FailedPrecondition outside of a
// model function.
class RecomputeScope {
 public:
  explicit RecomputeScope(bool on = true);
  ~RecomputeScope();
  RecomputeScope(const RecomputeScope&) = delete;
  RecomputeScope& operator=(const RecomputeScope&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace mox
