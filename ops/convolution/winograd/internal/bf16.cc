#include <algorithm>

#include "ops/convolution/winograd/problem.h"
#include "ops/convolution/winograd/winograd.h"

namespace mox {
namespace {

using winograd::kPanel;
using winograd::PairKernels;
using winograd::point_stride;
using winograd::Problem;

constexpr const char* kImplementation = "winograd4x4:avx512_core_bf16";
constexpr int64_t kRowStep = 6;  // by how many tiles products take rows
// Of the transformed tiles and products of a chunk: more than half of an L2 cache of 1 MiB, beside panels of
// the filter that pass.
constexpr int64_t kChunkFloats = 150 * 1024;

const PairKernels& kernels() { return winograd::pair_kernels_avx512_bf16(); }

Problem with_small_tiles(Problem problem) {
  problem.tile = 4;
  return problem;
}

size_t chunk_floats(const Problem& p, int64_t chunk) {
  return p.points() * (point_stride(chunk * p.in_channels / 2) + point_stride(chunk * kPanel));
}

Kernel correlation_kernel(const Node& node, const Problem& problem, int image, int filter, int bias,
                          bool turned, double operations, const Team& team) {
  const size_t filter_floats = problem.points() * problem.filter_pair_stride();
  const int64_t shares = team.size(), share_tiles = (problem.tiles() + shares - 1) / shares;
  const int64_t most =
      std::max(kRowStep, kChunkFloats / (problem.points() * (problem.in_channels / 2 + kPanel)));
  const int64_t chunk = even_chunk(share_tiles, most, kRowStep);
  Kernel kernel = plain_kernel(node, [=](const KernelArguments& args) {
    float* u = reinterpret_cast<float*>(args.scratch);
    const auto transform = turned ? kernels().transform_turned_filter : kernels().transform_filter;
    args.team.parallel_for(problem.in_channels / 2, 4, [&](int64_t first, int64_t last) {
      transform(problem, args.input<BFloat16>(filter), u, first, last);
    });
    const int64_t chunks = (problem.tiles() + chunk - 1) / chunk;
    args.team.parallel_for_by_thread(chunks, 1, [&](int thread, int64_t first, int64_t last) {
      kernels().correlate(problem, args.input<BFloat16>(image), u,
                          bias < 0 ? nullptr : args.input<float>(bias), args.output<BFloat16>(0),
                          first * chunk, std::min(problem.tiles(), last * chunk), chunk,
                          u + filter_floats + thread * chunk_floats(problem, chunk));
    });
  });
  kernel.input_layouts[image] = blocked_layout(problem, node.inputs[image].type());
  kernel.output_layouts[0] = blocked_layout(problem, node.outputs[0]);
  kernel.scratch_bytes = (filter_floats + shares * chunk_floats(problem, chunk)) * sizeof(float);
  kernel.implementation = kImplementation;
  kernel.floating_point_operations = operations;
  return kernel;
}

}  // namespace

Kernel winograd_bf16_forward_kernel(const Node& node, const ConvolutionGeometry& geometry, bool has_bias,
                                    const Team& team) {
  return correlation_kernel(node, with_small_tiles(winograd::forward_problem(geometry)), 0, 1,
                            has_bias ? 2 : -1, false, geometry.floating_point_operations(), team);
}

Kernel winograd_bf16_input_gradient_kernel(const Node& node, const ConvolutionGeometry& geometry, int w_input,
                                           int y_input, const Team& team) {
  return correlation_kernel(node, with_small_tiles(winograd::input_gradient_problem(geometry)), y_input,
                            w_input, -1, true, geometry.floating_point_operations(), team);
}

}  // namespace mox
