#include "ops/passes.h"

#include "ops/internal/elementwise_fusion.h"
#include "ops/internal/bias_fusion.h"

namespace mox {

std::vector<NamedRule> default_rules() { return {bias_rule(), elementwise_chain_rule()}; }

}  // namespace mox
