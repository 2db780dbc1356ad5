// How a run's models compute.
#pragma once

#include <string_view>

#include "ops/passes.h"

namespace mox::internal {

struct Arithmetic {
  bool direct_convolutions = false;  // see CompileOptions
  RuleOptions rules;
};

// The precision of that name ("fp32", "bf16") if this processor has it. Logs a warning where it costs more than float32,
// and where float32 must stand in for it.
Precision supported_precision(std::string_view name);

}  // namespace mox::internal
