// What the tests of convolutions with something done to their results have in common.
#pragma once

#include <string>
#include <vector>

#include "ops/convolution/conv2d.h"
#include "ops/fusion/default_rules.h"
#include "runtime/exec/plan_instance.h"
#include "tests/support/evaluate.h"

namespace mox::test {

struct ImageCase {
  const char* name;
  Shape image;
  int64_t filters, window = 3, stride = 1;
  Padding padding = Padding::kSame;

  ConvolutionOptions options() const { return {.strides = {stride, stride}, .padding = padding}; }
};

// Tiles that end with the image and that do not, several images in one group and several groups in one image.
inline std::vector<ImageCase> image_cases() {
  return {{"whole tiles", {3, 16, 24, 24}, 32},
          {"cut tiles", {7, 32, 11, 14}, 16},
          {"small images", {40, 48, 5, 3}, 64},
          {"no padding", {5, 16, 26, 19}, 16, 3, 1, Padding::kValid},
          {"window of 5", {4, 16, 23, 21}, 32, 5},
          {"stride of 2", {9, 32, 24, 22}, 64, 3, 2, Padding::of(1)},
          {"stride of 2, padding behind", {9, 16, 24, 24}, 32, 3, 2, Padding::kSame}};
}

// The printed plan of what `build` makes of inputs of these types.
inline std::string plan_text(const BuildMany& build, const std::vector<TensorType>& types,
                             const RuleOptions& rules) {
  Graph graph;
  const GraphScope scope(graph);
  std::vector<Tensor> in;
  for (const TensorType& type : types)
    in.push_back(graph.input(static_cast<int>(in.size()), type, SourceLocation::current()));
  const Team team(2);
  return Plan::compile(
             graph, {.fetches = build(in), .gradients = {}, .after_step_values = {}},
             {.rules = default_rules(rules), .convert = convert_layout, .hints = kernel_hints(rules)}, team)
      ->describe();
}

}  // namespace mox::test
