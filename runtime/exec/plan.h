// Plan: a graph compiled for one team, immutable. Compiling decides everything that a run then only does:
// which nodes remain, what is fused, which implementation and layout each takes, in what order, and where
// each value lives.
//
//   graph -> prune -> fold constants -> share equal nodes -> rewrite rules (the ops' fusions)
//         -> choose kernels and layouts, inserting conversions -> liveness -> offsets in one arena
//
// Memory of a value is one of: the arena (planned by liveness), a variable (host store), a component of the
// batch (the caller's memory), a constant (owned by the plan), a result (fetches and after-step values: kept
// after the run), or a gradient buffer (kept after the run). Gradients of a plan with `gradients_in_parts`
// have no buffer: they lie in the arena until they are used.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/graph/kernel.h"
#include "runtime/graph/rewrite.h"

namespace mox {

// One gradient to compute: d(loss)/d(variable). Several losses may want gradients of several variables.
struct GradientOutput {
  Tensor variable;
  Tensor gradient;
};

struct PlanRequest {
  std::vector<Tensor> fetches;
  std::vector<GradientOutput> gradients;
  std::vector<AfterStepValue> after_step_values;
};

struct CompileOptions {
  std::vector<NamedRule> rules;  // applied in order (ops/fusion/default_rules.h: default_rules)
  LayoutConverter convert;       // ops/fusion/default_rules.h: convert_layout
  KernelHints hints = {};        // ops/fusion/default_rules.h: kernel_hints
  // The plan's runs use each gradient as soon as it is final, and in parts where a kernel can give them so
  // (PlanInstance::run with a GradientPartListener): no gradient is kept, and their memory is shared with
  // what lives before and after them.
  bool gradients_in_parts = false;
};

struct PlanStatistics {
  size_t nodes = 0;            // of the graph after rewriting
  size_t instructions = 0;     // kernels that run
  size_t conversions = 0;      // of the instructions, those that only change a layout
  size_t arena_bytes = 0;      // activations, scratch, and gradients that are used at once
  size_t live_bytes = 0;       // the most that lives at once in the arena: no arrangement needs less
  int live_instruction = 0;    // the first instruction at which this much lives
  size_t unplanned_bytes = 0;  // what the same values would take without sharing memory
  size_t variable_bytes = 0;
  size_t gradient_bytes = 0;  // in buffers of their own
  size_t constant_bytes = 0;
  size_t result_bytes = 0;  // fetches and after-step values
  double floating_point_operations = 0;
  double compile_seconds = 0;
};

class Plan {
 public:
  // Compiles what `request` needs of `graph` (which is left as it is) for `team`, whose thread is the caller.
  static std::shared_ptr<const Plan> compile(const Graph& graph, const PlanRequest& request,
                                             const CompileOptions& options, const Team& team);
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  const PlanStatistics& statistics() const;
  // A table for people: op, name, shapes, layouts, implementation, FLOPs, bytes; then the totals.
  std::string describe() const;
  // A stable hash of everything that decides the result: ops, attributes, constants, shapes, order, who reads
  // what, implementations.
  uint64_t fingerprint() const;

  struct Impl;
  const Impl& impl() const { return *impl_; }

 private:
  explicit Plan(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace mox
