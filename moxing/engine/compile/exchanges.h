// What the replicas of a step exchange while they compute (replica_sum): all of them the same, in one order,
// or some would wait for others that never come.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/source_location.h"
#include "runtime/exec/plan.h"
#include "runtime/graph/graph.h"

namespace mox::internal {

struct Exchange {
  std::string op;
  TensorType type;
  SourceLocation where;  // the program's line
  bool is_like(const Exchange& other) const { return op == other.op && type == other.type; }
};

// Those that computing `request` of `graph` takes, in their order.
std::vector<Exchange> exchanges_of(const Graph& graph, const PlanRequest& request);

// Throws FailedPrecondition, naming the first difference, unless the replicas of a short batch exchange what
// those of a full one do.
void require_equal_exchanges(const std::vector<Exchange>& full, const std::vector<Exchange>& small);

}  // namespace mox::internal
