#include <fmt/format.h>

#include <algorithm>

#include "ops/normalisation/normalisation.h"
#include "ops/support/channel_view.h"

namespace mox {
namespace {

std::vector<TensorType> infer_sum(const OpCall& call) {
  call.require(call.dtype(0) == DType::kFloat32, "a float32 input");
  call.require(call.shape(0).rank() >= 2, "dy of rank 2 or more");
  return {{DType::kFloat32, {call.shape(0)[channel_axis(call.shape(0))]}}};
}

std::vector<Tensor> sum_gradient(const GradientCall& call) {
  return {bias_broadcast(call.gradient(), call.input(0).shape())};
}

// sums[c] = the sum over `pixels` pixels of `kWidth` channels.
template <int kWidth>
void sum_pixels(const float* x, int64_t pixels, float* sums) {
  float total[kWidth] = {};
  for (int64_t p = 0; p < pixels; ++p)
    for (int c = 0; c < kWidth; ++c) total[c] += x[p * kWidth + c];
  std::copy(total, total + kWidth, sums);
}

// One channel: sixteen sums side by side, so that the loop vectorises.
void sum_row(const float* x, int64_t pixels, float* sum) {
  float lanes[16] = {};
  int64_t p = 0;
  for (; p + 16 <= pixels; p += 16)
    for (int i = 0; i < 16; ++i) lanes[i] += x[p + i];
  float total = 0;
  for (int i = 0; i < 16; ++i) total += lanes[i];
  for (; p < pixels; ++p) total += x[p];
  *sum = total;
}

void sum_run(const float* x, int64_t pixels, int64_t width, float* sums) {
  if (width == 1) return sum_row(x, pixels, sums);
  if (width == 8) return sum_pixels<8>(x, pixels, sums);
  if (width == 16) return sum_pixels<16>(x, pixels, sums);
  std::fill(sums, sums + width, 0.0f);
  for (int64_t p = 0; p < pixels; ++p)
    for (int64_t c = 0; c < width; ++c) sums[c] += x[p * width + c];
}

// Runs are added up in float32, and what comes of several in float64: the error does not grow with the plane.
void sum_pixels(const float* x, int64_t pixels, int64_t width, float* sums) {
  constexpr int64_t kRun = 4096, kMostChannels = 16;
  if (pixels <= kRun || width > kMostChannels) return sum_run(x, pixels, width, sums);
  double totals[kMostChannels] = {};
  for (int64_t first = 0; first < pixels; first += kRun) {
    sum_run(x + first * width, std::min(kRun, pixels - first), width, sums);
    for (int64_t c = 0; c < width; ++c) totals[c] += sums[c];
  }
  std::copy_n(totals, width, sums);
}

// Where the sum is cut: borders depend on the shape alone.
struct Pieces {
  explicit Pieces(const ChannelView& view)
      : count(view.outer), blocks(view.blocks), pixels(view.inner), width(view.width), last(view.inner) {
    if (blocks > 1 || width == 1) return;
    // A matrix, or channels last: all rows follow each other, and are cut anew.
    constexpr int64_t kRows = 64;
    const int64_t rows = view.outer * view.inner;
    pixels = kRows;
    count = (rows + kRows - 1) / kRows;
    last = rows - (count - 1) * kRows;
  }
  int64_t count, blocks, pixels, width;
  int64_t last;  // pixels of the last piece
};

Kernel compile_sum(const KernelRequest& request) {
  const auto [layout, view] = follow_layout(request.node.inputs[0].type(), request.input_layouts[0]);
  const Pieces pieces(view);
  const int64_t channels = view.channels, padded = view.padded_channels();
  Kernel kernel = plain_kernel(request.node, [pieces, channels, padded](const KernelArguments& arguments) {
    const float* dy = arguments.input<float>(0);
    float* sums = arguments.output<float>(0);
    float* partial = reinterpret_cast<float*>(arguments.scratch);  // [pieces][padded channels]
    const int64_t run = pieces.pixels * pieces.width;
    arguments.team.parallel_for(
        pieces.count * pieces.blocks, 1 + 16384 / (run + 1), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            sum_pixels(dy + i * run, i / pieces.blocks == pieces.count - 1 ? pieces.last : pieces.pixels,
                       pieces.width, partial + i * pieces.width);
        });
    std::fill(sums, sums + channels, 0.0f);
    for (int64_t piece = 0; piece < pieces.count; ++piece)
      for (int64_t c = 0; c < channels; ++c) sums[c] += partial[piece * padded + c];
  });
  kernel.input_layouts[0] = layout;
  kernel.scratch_bytes = (pieces.count * padded) * sizeof(float);
  return kernel;
}

const Op kBiasAddGradient{
    .name = "bias_add_gradient", .infer = infer_sum, .gradient = sum_gradient, .compile = compile_sum};

Shape broadcast_shape(const Attributes& attributes) {
  return Shape(attributes.get<std::vector<int64_t>>("shape"));
}

std::vector<TensorType> infer_broadcast(const OpCall& call) {
  const Shape shape = broadcast_shape(call.attributes);
  call.require(call.dtype(0) == DType::kFloat32, "a float32 bias");
  call.require(shape.rank() >= 2, "a shape of rank 2 or more");
  const int64_t channels = shape[channel_axis(shape)];
  if (call.shape(0) != Shape{channels})
    call.fail(fmt::format("a bias [{}] for the shape {}", channels, to_string(shape)));
  return {{DType::kFloat32, shape}};
}

std::vector<Tensor> broadcast_gradient(const GradientCall& call) {
  return {bias_add_gradient(call.gradient())};
}

Kernel compile_broadcast(const KernelRequest& request) {
  const TensorType& type = request.node.outputs[0];
  const ChannelView view = *channel_view(type, Layout::plain(type));
  return plain_kernel(request.node, [view](const KernelArguments& arguments) {
    const float* bias = arguments.input<float>(0);
    float* y = arguments.output<float>(0);
    const int64_t run = view.inner * view.width;
    arguments.team.parallel_for(
        view.outer * view.blocks, 1 + 16384 / (run + 1), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            for (int64_t p = 0; p < view.inner; ++p)
              std::copy_n(bias + (i % view.blocks) * view.width, view.width, y + i * run + p * view.width);
        });
  });
}

const Op kBiasBroadcast{.name = "bias_broadcast",
                        .infer = infer_broadcast,
                        .gradient = broadcast_gradient,
                        .compile = compile_broadcast};

}  // namespace

Tensor bias_add_gradient(const Tensor& dy, SourceLocation where) {
  return make_tensor(kBiasAddGradient, {dy}, {}, where);
}

Tensor bias_broadcast(const Tensor& bias, const Shape& shape, SourceLocation where) {
  return make_tensor(kBiasBroadcast, {bias}, {{"shape", std::vector<int64_t>(shape.begin(), shape.end())}},
                     where);
}

}  // namespace mox
