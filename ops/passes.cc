#include "ops/passes.h"

#include "ops/internal/elementwise_fusion.h"

namespace mox {

std::vector<NamedRule> default_rules() { return {elementwise_chain_rule()}; }

}  // namespace mox
