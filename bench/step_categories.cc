#include "bench/step_categories.h"

#include <algorithm>
#include <string_view>

namespace bench {
namespace {

struct Rule {
  std::string_view prefix, category;
};

// The first prefix of an op's name that fits decides.
constexpr Rule kRules[] = {
    {"conv2d_input_gradient", "convolution_data"},
    {"conv2d_filter_gradient", "convolution_weights"},
    {"conv2d_normalised_gradients", "convolution_gradients"},
    {"conv2d", "convolution_forward"},
    {"depthwise_normalised_gradients", "convolution_gradients"},
    {"depthwise", "convolution_forward"},
    {"matmul", "matrix_product"},
    {"batch_norm", "normalisation"},
    {"max_pool", "pooling"},
    {"avg_pool", "pooling"},
};

std::string_view category_of(const mox::KernelTime& kernel) {
  if (kernel.is_conversion) return "reorders";
  const auto* rule =
      std::ranges::find_if(kRules, [&](const Rule& r) { return kernel.op.starts_with(r.prefix); });
  return rule == std::end(kRules) ? "elementwise" : rule->category;
}

}  // namespace

std::vector<std::pair<std::string, double>> categories(const StepProfile& profile) {
  std::vector<std::pair<std::string, double>> sums = {{"convolution_forward", 0},
                                                      {"convolution_data", 0},
                                                      {"convolution_weights", 0},
                                                      {"convolution_gradients", 0},
                                                      {"matrix_product", 0},
                                                      {"normalisation", 0},
                                                      {"pooling", 0},
                                                      {"elementwise", 0},
                                                      {"reorders", 0}};
  for (const mox::KernelTime& kernel : profile.kernels)
    std::ranges::find(sums, category_of(kernel), &std::pair<std::string, double>::first)->second +=
        kernel.seconds;
  sums.emplace_back("optimizer", profile.update_seconds());
  sums.emplace_back("overhead", profile.overhead());
  return sums;
}

}  // namespace bench
