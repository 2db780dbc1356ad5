#include "ops/convolution/winograd/winograd.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "ops/convolution/winograd/fused_inputs.h"
#include "ops/convolution/winograd/problem.h"
#include "ops/normalisation/batch_norm_loops.h"
#include "ops/processor/processor.h"
#include "runtime/base/error.h"

namespace mox {
namespace {

using winograd::Epilogue;
using winograd::forward_problem;
using winograd::input_gradient_problem;
using winograd::Kernels;
using winograd::Problem;

// What the transformed filter and tiles may take: most of an L2 cache of 1 MiB.
constexpr int64_t kCacheFloats = 220 * 1024;
constexpr int64_t kFilterParts = 8;  // partial sums of a filter gradient, whatever the team
constexpr int64_t kFewestTiles = 64;

size_t filter_floats(const Problem& p) { return p.filter_points() * p.filter_stride(); }
size_t chunk_floats(const Problem& p, int64_t chunk) {
  using winograd::point_stride;
  return p.points() * (point_stride(chunk * p.in_channels) + point_stride(chunk * p.out_channels));
}
// Tiles at a time: what fits into the cache beside the filter, in steps of 12 as the kernels ask.
int64_t chunk_of(const Problem& p) {
  int64_t chunk = 36;
  while (chunk > 12 && static_cast<int64_t>(filter_floats(p) + chunk_floats(p, chunk)) > kCacheFloats)
    chunk -= 12;
  return chunk;
}
int64_t chunks_of(const Problem& p) {
  const int64_t chunk = chunk_of(p);
  return (p.tiles() + chunk - 1) / chunk;
}
std::string implementation_of(const Problem& p) {
  return winograd::implementation_of(p, p.stride == winograd::Stride::kOne ? "" : "_strided");
}
// What the outputs go through, from the kernel's arguments and as many floats as there are out-channels.
using MakeEpilogue = std::function<Epilogue(const KernelArguments& args, float* per_channel)>;

Kernel correlation_kernel(const Node& node, const Problem& problem, int image, int filter, int bias,
                          bool turned, double operations, const Team& team,
                          const MakeEpilogue& make_epilogue = nullptr) {
  const Kernels& kernels = winograd::kernels_of(problem);
  const int64_t chunk = chunk_of(problem);
  Kernel kernel = plain_kernel(node, [=, &kernels](const KernelArguments& args) {
    float* per_channel = reinterpret_cast<float*>(args.scratch);
    float* u = per_channel + problem.out_channels;
    const auto transform = turned ? kernels.transform_turned_filter : kernels.transform_filter;
    args.team.parallel_for(problem.in_channels, 8, [&](int64_t first, int64_t last) {
      transform(problem, args.input<float>(filter), u, first, last);
    });
    const Epilogue epilogue = make_epilogue ? make_epilogue(args, per_channel) : Epilogue();
    args.team.parallel_for_by_thread(chunks_of(problem), 1, [&](int thread, int64_t first, int64_t last) {
      kernels.correlate(problem, args.input<float>(image), u, bias < 0 ? nullptr : args.input<float>(bias),
                        args.output<float>(0), epilogue, first * chunk,
                        std::min(problem.tiles(), last * chunk), chunk,
                        u + filter_floats(problem) + thread * chunk_floats(problem, chunk));
    });
  });
  kernel.input_layouts[image] = blocked_layout(problem, node.inputs[image].type());
  kernel.output_layouts[0] = blocked_layout(problem, node.outputs[0]);
  kernel.scratch_bytes =
      (problem.out_channels + filter_floats(problem) + team.size() * chunk_floats(problem, chunk)) *
      sizeof(float);
  kernel.implementation = implementation_of(problem);
  kernel.floating_point_operations = operations;
  return kernel;
}

// Strides of 2 with the padding that images are cut for, and a filter that stays in the cache.
bool strided_pays(const ConvolutionGeometry& g) {
  for (const WindowAxis& axis : g.window)
    if (axis.stride != 2 || axis.dilation != 1 || axis.before > 1 || axis.after > 1) return false;
  if (g.x.dtype != DType::kFloat32 || g.w.shape[2] != 3 || g.window[0].before != g.window[1].before)
    return false;
  const Problem problem = forward_problem(g);
  return problem.tiles() >= kFewestTiles && !problem.is_wide();
}

// Whether there are chunks of tiles that are worked on from beginning to end.
template <typename ProblemOf>
bool has_epilogue(const ConvolutionGeometry& geometry, ProblemOf problem_of) {
  return geometry.x.dtype == DType::kFloat32 && winograd_pays(geometry) && !problem_of(geometry).is_wide();
}

}  // namespace

bool winograd_pays(const ConvolutionGeometry& g) {
  const bool is_low = g.x.dtype == DType::kBFloat16;
  // Tiles multiply several times as many in a second: more than Winograd's method saves.
  if (is_low && (!processor().bfloat16_products || processor().tiles)) return false;
  if (g.groups != 1 || g.x.shape.elements() == 0 || g.y.shape.elements() == 0) return false;
  const int64_t window = g.w.shape[2];
  if (is_low && window != 3) return false;
  if (g.w.shape[3] != window || (window != 3 && window != 5)) return false;
  const int64_t in = g.x.shape[1], out = g.y.shape[1];
  if (in % processor().lanes != 0 || out % processor().lanes != 0) return false;
  if (g.window[0].stride != 1) return strided_pays(g);
  for (const WindowAxis& axis : g.window)
    if (axis.stride != 1 || axis.dilation != 1 || axis.before >= window || axis.after >= window) return false;
  const Problem problem = forward_problem(g);
  return problem.tiles() >= kFewestTiles && (window == 3 || !problem.is_wide());
}

Kernel winograd_forward_kernel(const Node& node, const ConvolutionGeometry& geometry, bool has_bias,
                               const Team& team) {
  if (geometry.x.dtype == DType::kBFloat16)
    return winograd_bf16_forward_kernel(node, geometry, has_bias, team);
  if (forward_problem(geometry).is_wide()) return winograd_wide_forward_kernel(node, geometry, has_bias);
  return correlation_kernel(node, forward_problem(geometry), 0, 1, has_bias ? 2 : -1, false,
                            geometry.floating_point_operations(), team);
}

int64_t winograd_moment_groups(const ConvolutionGeometry& geometry) {
  return has_epilogue(geometry, forward_problem) ? chunks_of(forward_problem(geometry)) : 0;
}

Kernel winograd_moments_kernel(const Node& node, const ConvolutionGeometry& geometry, const Team& team) {
  MOX_ASSERT(node.outputs[1].shape[0] == winograd_moment_groups(geometry),
             "the node was made for the groups of these kernels");
  return correlation_kernel(
      node, forward_problem(geometry), 0, 1, -1, false, geometry.floating_point_operations(), team,
      [](const KernelArguments& args, float*) { return Epilogue{.moments = args.output<float>(1)}; });
}

int64_t winograd_relu_gradient_groups(const ConvolutionGeometry& geometry) {
  return has_epilogue(geometry, input_gradient_problem) ? chunks_of(input_gradient_problem(geometry)) : 0;
}

Kernel winograd_relu_gradient_kernel(const Node& node, const ConvolutionGeometry& geometry, double epsilon,
                                     const Team& team) {
  MOX_ASSERT(node.outputs[1].shape[0] == winograd_relu_gradient_groups(geometry),
             "the node was made for the groups of these kernels");
  const auto inputs = positions<ReluGradientInputs>(node);
  const Problem problem = input_gradient_problem(geometry);
  Kernel kernel = correlation_kernel(
      node, problem, inputs.dy.index, inputs.filter.index, -1, true, geometry.floating_point_operations(),
      team, [inputs, epsilon, channels = geometry.x.shape[1]](const KernelArguments& args, float* factors) {
        const auto* scale = inputs.scale.of<float>(args);
        const auto* variance = inputs.variance.of<float>(args);
        for (int64_t c = 0; c < channels; ++c)
          factors[c] = normalisation::channel_factor(scale[c], variance[c], epsilon);
        return Epilogue{.gradient = {.x = inputs.x.of<float>(args),
                                     .more = inputs.more.of<float>(args),
                                     .result = inputs.result.of<float>(args),
                                     .mean = inputs.mean.of<float>(args),
                                     .factor = factors,
                                     .offset = inputs.offset.of<float>(args),
                                     .sums = args.output<float>(1)}};
      });
  for (const InputPosition input : {inputs.x, inputs.more, inputs.result})
    input.set_layout(kernel, blocked_layout(problem, geometry.x));
  // A pixel of what is added is read just before it is written, and by the same thread.
  inputs.more.lend_to(kernel, 0);
  return kernel;
}

Kernel winograd_input_gradient_kernel(const Node& node, const ConvolutionGeometry& geometry, int w_input,
                                      int y_input, const Team& team) {
  if (geometry.x.dtype == DType::kBFloat16)
    return winograd_bf16_input_gradient_kernel(node, geometry, w_input, y_input, team);
  if (input_gradient_problem(geometry).is_wide())
    return winograd_wide_input_gradient_kernel(node, geometry, w_input, y_input);
  return correlation_kernel(node, input_gradient_problem(geometry), y_input, w_input, -1, true,
                            geometry.floating_point_operations(), team);
}

Kernel winograd_filter_gradient_kernel(const Node& node, const ConvolutionGeometry& geometry,
                                       const Team& team) {
  if (geometry.x.dtype == DType::kBFloat16) return winograd_bf16_filter_gradient_kernel(node, geometry);
  if (forward_problem(geometry).gradient_is_wide())
    return winograd_wide_filter_gradient_kernel(node, geometry);
  const Problem problem = forward_problem(geometry);
  const int64_t chunk = chunk_of(problem);
  const Kernels& kernels = winograd::kernels_of(problem);
  Kernel kernel = plain_kernel(node, [=, &kernels](const KernelArguments& args) {
    float* sums = reinterpret_cast<float*>(args.scratch);
    float* chunks_memory = sums + kFilterParts * filter_floats(problem);
    const int64_t chunks = chunks_of(problem);
    args.team.parallel_for_by_thread(kFilterParts, 1, [&](int thread, int64_t first, int64_t last) {
      for (int64_t part = first; part < last; ++part)
        kernels.accumulate_filter(problem, args.input<float>(0), args.input<float>(1),
                                  sums + part * filter_floats(problem),
                                  std::min(problem.tiles(), chunks * part / kFilterParts * chunk),
                                  std::min(problem.tiles(), chunks * (part + 1) / kFilterParts * chunk),
                                  chunk, chunks_memory + thread * chunk_floats(problem, chunk));
    });
    args.team.parallel_for(problem.out_channels, 8, [&](int64_t first, int64_t last) {
      kernels.finish_filter(problem, sums, kFilterParts, args.output<float>(0), first, last);
    });
  });
  kernel.input_layouts = {blocked_layout(problem, geometry.x), blocked_layout(problem, geometry.y)};
  kernel.scratch_bytes =
      (kFilterParts * filter_floats(problem) + team.size() * chunk_floats(problem, chunk)) * sizeof(float);
  kernel.implementation = implementation_of(problem);
  kernel.floating_point_operations = geometry.floating_point_operations();
  return kernel;
}

}  // namespace mox
