// Runs a small graph once, for tests, for initial values, for trying an op out. Compiles,
// runs, returns copies.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "runtime/exec/plan.h"

namespace mox {

struct EvaluateOptions {
  // values by name; others take their initial value
  std::map<std::string, Array, std::less<>> variables = {};
  uint64_t seed = 0;
  int64_t step = 0;
  int threads = 1;
  CompileOptions compile = {};
};

// The calling thread computes with a team of `threads` meanwhile, and with its own afterwards. Throws
// FailedPrecondition where the system refuses so many threads.
std::vector<Array> evaluate(std::span<const Tensor> fetches, std::span<const Array> inputs,
                            const EvaluateOptions& options);

}  // namespace mox
