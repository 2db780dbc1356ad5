#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ops/normalisation/normalisation.h"
#include "ops/support/channel_view.h"
#include "ops/support/fusable_ops.h"

namespace mox {
namespace {

constexpr int64_t kGrain = 16384;  // elements that are worth a thread

std::vector<TensorType> infer_bias_add(const OpCall& call) {
  call.require(call.dtype(0) == DType::kFloat32 && call.dtype(1) == DType::kFloat32, "float32 inputs");
  call.require(call.shape(0).rank() >= 2, "x of rank 2 or more");
  const int64_t channels = call.shape(0)[channel_axis(call.shape(0))];
  if (call.shape(1) != Shape{channels})
    call.fail(fmt::format("a bias [{}], one number a channel of x", channels));
  return same_as_input(call);
}

std::vector<Tensor> gradient_of_bias_add(const GradientCall& call) {
  return {call.gradient(), bias_add_gradient(call.gradient())};
}

// y = x + bias for `pixels` pixels of `width` channels. A width known to the compiler keeps
// the bias in registers.
template <int kWidth>
void add_to_pixels(const float* x, const float* bias, float* y, int64_t pixels) {
  for (int64_t p = 0; p < pixels; ++p)
    for (int c = 0; c < kWidth; ++c) y[p * kWidth + c] = x[p * kWidth + c] + bias[c];
}
void add_to_pixels(const float* x, const float* bias, float* y, int64_t pixels, int64_t width) {
  if (width == 1) {
    for (int64_t p = 0; p < pixels; ++p) y[p] = x[p] + bias[0];
  } else if (width == 8) {
    add_to_pixels<8>(x, bias, y, pixels);
  } else if (width == 16) {
    add_to_pixels<16>(x, bias, y, pixels);
  } else {
    for (int64_t p = 0; p < pixels; ++p)
      for (int64_t c = 0; c < width; ++c) y[p * width + c] = x[p * width + c] + bias[c];
  }
}

Kernel compile_bias_add(const KernelRequest& request) {
  const auto [layout, view] = follow_layout(request.node.outputs[0], request.input_layouts[0]);
  Kernel kernel = plain_kernel(request.node, [view = view](const KernelArguments& arguments) {
    const float* x = arguments.input<float>(0);
    float* y = arguments.output<float>(0);
    // The bias with zeros for the padded channels, so that padding stays zero.
    float* bias = reinterpret_cast<float*>(arguments.scratch);
    std::memcpy(bias, arguments.input<float>(1), view.channels * sizeof(float));
    std::fill(bias + view.channels, bias + view.padded_channels(), 0.0f);
    const int64_t run = view.inner * view.width;
    arguments.team.parallel_for(view.outer * view.blocks, 1 + kGrain / (run + 1),
                                [&](int64_t begin, int64_t end) {
                                  for (int64_t i = begin; i < end; ++i)
                                    add_to_pixels(x + i * run, bias + (i % view.blocks) * view.width,
                                                  y + i * run, view.inner, view.width);
                                });
  });
  kernel.input_layouts[0] = kernel.output_layouts[0] = layout;
  kernel.in_place = {{0, 0}};
  kernel.scratch_bytes = view.padded_channels() * sizeof(float);
  return kernel;
}

}  // namespace

const Op& bias_add_op() {
  static const Op op{.name = "bias_add",
                     .infer = infer_bias_add,
                     .gradient = gradient_of_bias_add,
                     .compile = compile_bias_add};
  return op;
}

Tensor bias_add(const Tensor& x, const Tensor& bias, SourceLocation where) {
  return make_tensor(bias_add_op(), {x, bias}, {}, where);
}

}  // namespace mox
