#include "ops/passes.h"

#include "ops/internal/batch_norm_fusion.h"
#include "ops/internal/bias_fusion.h"
#include "ops/internal/elementwise_fusion.h"

namespace mox {

std::vector<NamedRule> default_rules() {
  return {bias_rule(), batch_norm_activation_rule(), batch_norm_gradient_rule(), elementwise_chain_rule()};
}

}  // namespace mox
