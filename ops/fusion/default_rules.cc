#include "ops/fusion/default_rules.h"

#include "ops/convolution/convolution.h"
#include "ops/fusion/elementwise_rule.h"
#include "ops/fusion/internal/batch_norm_folding_rule.h"
#include "ops/fusion/internal/batch_norm_rule.h"
#include "ops/fusion/internal/bias_rule.h"
#include "ops/fusion/internal/convolution_gradient_sums_rule.h"
#include "ops/fusion/internal/convolution_moments_rule.h"
#include "ops/fusion/internal/convolution_normalised_gradients_rule.h"
#include "ops/fusion/internal/convolution_of_normalised_rule.h"
#include "ops/fusion/internal/depthwise_rule.h"
#include "ops/fusion/internal/direct_convolutions_rule.h"
#include "ops/fusion/internal/low_precision_rule.h"
#include "ops/processor/processor.h"
#include "runtime/base/error.h"
#include "runtime/graph/recomputation.h"

namespace mox {

std::vector<NamedRule> default_rules(const RuleOptions& options) {
  std::vector<NamedRule> rules = {bias_rule(), batch_norm_folding_rule(), batch_norm_activation_rule(),
                                  batch_norm_gradient_rule()};
  rules.push_back(batch_norm_recomputation_rule(options.recomputed, options.precision));
  rules.push_back(shortcut_recomputation_rule(options.recomputed, options.precision));
  rules.push_back(recomputation_rule());
  if (bfloat16_support() != BFloat16Support::kNone) rules.push_back(low_precision_rule(options.precision));
  if (options.convolution_error < kStatedConvolutionError || !options.direct_classes.empty())
    rules.push_back(direct_convolutions_rule(options.convolution_error, options.direct_classes));
  rules.push_back(convolution_moments_rule(options.direct_convolutions));
  rules.push_back(convolution_gradient_sums_rule(options.direct_convolutions));
  rules.push_back(convolution_normalised_gradients_rule());
  rules.push_back(unneeded_normalised_image_rule());
  rules.push_back(depthwise_gradients_rule());
  rules.push_back(depthwise_of_normalised_rule());
  rules.push_back(elementwise_chain_rule());
  return rules;
}

KernelHints kernel_hints(const RuleOptions& options) {
  return options.direct_convolutions ? KernelHints{kDirectConvolutions} : KernelHints{};
}

RecomputedNormalisations recomputed_normalisations(std::string_view word) {
  if (word == "none") return RecomputedNormalisations::kNone;
  if (word == "auto") return RecomputedNormalisations::kCheap;
  MOX_ASSERT(word == "normalisation", "an option has one of its words");
  return RecomputedNormalisations::kAll;
}

BFloat16Support bfloat16_support() {
  if (!processor().bfloat16_vectors) return BFloat16Support::kNone;
  return processor().bfloat16_products ? BFloat16Support::kNative : BFloat16Support::kEmulated;
}

}  // namespace mox
