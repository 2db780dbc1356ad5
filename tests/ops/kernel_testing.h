// Runs the kernel of one node by hand, in memory full of NaN, so that what a plan's arena may hold cannot
// help it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "ops/fusion/default_rules.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/op.h"

namespace mox::test {

// `bytes` (and never none) of NaNs.
inline std::shared_ptr<std::byte> poisoned(size_t bytes) {
  auto memory = allocate_aligned(bytes + 64);
  auto* floats = reinterpret_cast<float*>(memory.get());
  std::fill(floats, floats + bytes / sizeof(float), std::numeric_limits<float>::quiet_NaN());
  return memory;
}

inline void run_kernel(const Kernel& kernel, const KernelFunction& run,
                       const std::vector<const std::byte*>& inputs, const std::vector<std::byte*>& outputs,
                       const Team& team) {
  const auto scratch = poisoned(kernel.scratch_bytes);
  run({.inputs = inputs, .outputs = outputs, .scratch = scratch.get(), .team = team, .seed = 1, .step = 0});
}

inline std::shared_ptr<std::byte> converted(const TensorType& type, const Layout& from, const Layout& to,
                                            std::shared_ptr<std::byte> data, const Team& team) {
  if (from == to) return data;
  const Kernel kernel = convert_layout(type, from, to, team);
  auto result = poisoned(to.bytes());
  run_kernel(kernel, kernel.instantiate(), {data.get()}, {result.get()}, team);
  return result;
}

// The number of elements of a blocked layout's memory that belong to no element of the value,
// and are not zero.
inline int64_t nonzero_padding(const TensorType& type, const Layout& layout, const std::byte* data) {
  if (layout.is_plain() || layout.is_opaque()) return 0;
  std::vector<bool> is_value(layout.bytes() / sizeof(float), false);
  std::vector<int64_t> index(static_cast<size_t>(type.shape.rank()), 0);
  for (int64_t count = type.shape.elements(); count-- > 0;) {
    std::vector<int64_t> rest = index;
    int64_t offset = 0, step = 1;
    for (size_t b = layout.blocks().size(); b-- > 0;) {
      const auto [dimension, size] = layout.blocks()[b];
      int64_t& i = rest[dimension];
      offset += i % size * step;
      i /= size;
      step *= size;
    }
    for (size_t d = 0; d < rest.size(); ++d) offset += rest[d] * layout.strides()[d];
    is_value[offset] = true;
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < type.shape[static_cast<int>(d)]) break;
      index[d] = 0;
    }
  }
  const auto* floats = reinterpret_cast<const float*>(data);
  int64_t wrong = 0;
  for (size_t i = 0; i < is_value.size(); ++i) wrong += !is_value[i] && floats[i] != 0;
  return wrong;
}

// Output 0 of y's node, whose inputs are graph inputs 0, 1, ... with `values`. The inputs exist in the
// layouts `offered` (plain where there are none). The kernel runs twice; expects that padding is
// zero each time.
inline Array run_node(const Tensor& y, const std::vector<Array>& values,
                      const std::vector<Layout>& offered = {}, int threads = 1, Kernel* compiled = nullptr) {
  const Team team(threads);
  team.enter();
  const Node& node = *y.node();
  KernelRequest request{node, offered, std::vector<bool>(node.inputs.size(), false), team};
  if (offered.empty())
    for (const Tensor& input : node.inputs) request.input_layouts.push_back(Layout::plain(input.type()));
  const Kernel kernel = node.op->compile(request);
  if (compiled) *compiled = kernel;
  const KernelFunction run = kernel.instantiate();
  std::shared_ptr<std::byte> result;
  std::vector<std::shared_ptr<std::byte>> output_memory;
  for (const Layout& layout : kernel.output_layouts) output_memory.push_back(poisoned(layout.bytes()));
  for (int repeat = 0; repeat < 2; ++repeat) {
    std::vector<std::shared_ptr<std::byte>> input_memory;
    std::vector<const std::byte*> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const TensorType& type = node.inputs[i].type();
      auto data = poisoned(type.bytes());
      if (type.bytes() > 0) std::memcpy(data.get(), values[i].data(), type.bytes());
      input_memory.push_back(converted(type, Layout::plain(type), kernel.input_layouts[i], data, team));
      inputs.push_back(input_memory.back().get());
    }
    std::vector<std::byte*> outputs;
    for (size_t i = 0; i < output_memory.size(); ++i) {
      const auto poison = poisoned(kernel.output_layouts[i].bytes());
      std::memcpy(output_memory[i].get(), poison.get(), kernel.output_layouts[i].bytes());
      outputs.push_back(output_memory[i].get());
    }
    run_kernel(kernel, run, inputs, outputs, team);
    const TensorType& type = node.outputs[0];
    EXPECT_EQ(nonzero_padding(type, kernel.output_layouts[0], outputs[0]), 0)
        << "padding of " << kernel.output_layouts[0].to_string() << " of " << to_string(type);
    result = type.shape.elements() == 0
                 ? output_memory[0]
                 : converted(type, kernel.output_layouts[0], Layout::plain(type), output_memory[0], team);
  }
  return Array(node.outputs[0], result).clone();
}

inline void expect_near(const Array& actual, const Array& expected, double tolerance) {
  ASSERT_EQ(actual.type(), expected.type());
  double scale = 1;
  for (float v : expected.values<float>())
    if (std::isfinite(v)) scale = std::max(scale, std::abs(static_cast<double>(v)));
  int reported = 0;
  for (size_t i = 0; i < expected.values<float>().size() && reported < 5; ++i) {
    const float a = actual.values<float>()[i], e = expected.values<float>()[i];
    if (a != e && !(std::abs(a - e) <= tolerance * scale)) {
      ADD_FAILURE() << "element " << i << ": " << a << " instead of " << e;
      ++reported;
    }
  }
}

}  // namespace mox::test
