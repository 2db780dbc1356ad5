#include <algorithm>

#include "ops/internal/winograd.h"
#include "ops/internal/winograd_problem.h"

namespace mox {
namespace {

using winograd::backward_input_problem;
using winograd::channel_blocked;
using winograd::forward_problem;
using winograd::point_stride;
using winograd::Problem;
using winograd::WideChunk;
using winograd::WideKernels;

constexpr const char* kImplementation = "winograd6x6_wide:avx512_core";
constexpr int64_t kRowStep = 6,
                  kTermStep = 16;  // by how many the products take tiles: as rows, as terms of a sum
constexpr int64_t kPointFloats =
    96 * 1024;  // of one point's tiles: they stay in an L2 cache of 1 MiB beside the filter's panels

// Tiles at a time, a multiple of `step`, evenly over the chunks.
int64_t rows_of(const Problem& p, int64_t step) {
  const int64_t most = std::max<int64_t>(96, kPointFloats / std::max(p.in_channels, p.out_channels));
  return winograd::even_chunk(p.tiles(), most, step);
}
size_t filter_floats(const Problem& p) { return static_cast<size_t>(p.points() * p.filter_stride()); }
size_t tile_floats(const Problem& p, int64_t rows, int64_t channels) {
  return static_cast<size_t>(p.points() * point_stride(rows * channels));
}

Kernel correlation_kernel(const Node& node, const Problem& problem, int image, int filter, int bias,
                          bool turned, double operations) {
  const WideKernels& kernels = winograd::wide_kernels_avx512();
  const int64_t rows = rows_of(problem, kRowStep);
  Kernel kernel = plain_kernel(node, [=, &kernels](const KernelArguments& args) {
    float* u = reinterpret_cast<float*>(args.scratch);
    float* v = u + filter_floats(problem);
    float* products = v + tile_floats(problem, rows, problem.in_channels);
    const auto transform = turned ? kernels.transform_turned_filter : kernels.transform_filter;
    args.team.parallel_for(problem.in_channels, 8, [&](int64_t first, int64_t last) {
      transform(problem, args.input<float>(filter), u, first, last);
    });
    for (WideChunk chunk{0, rows}; chunk.first_tile < problem.tiles(); chunk.first_tile += rows) {
      args.team.parallel_for(rows, 1, [&](int64_t first, int64_t last) {
        kernels.transform_image(problem, chunk, args.input<float>(image), v, first, last);
      });
      args.team.parallel_for(problem.points(), 1, [&](int64_t first, int64_t last) {
        kernels.multiply(problem, chunk, v, u, products, first, last);
      });
      args.team.parallel_for(rows, 1, [&](int64_t first, int64_t last) {
        kernels.store_outputs(problem, chunk, products, bias < 0 ? nullptr : args.input<float>(bias),
                              args.output<float>(0), first, last);
      });
    }
  });
  kernel.input_layouts[static_cast<size_t>(image)] =
      channel_blocked(node.inputs[static_cast<size_t>(image)].type());
  kernel.output_layouts[0] = channel_blocked(node.outputs[0]);
  kernel.scratch_bytes = (filter_floats(problem) + tile_floats(problem, rows, problem.in_channels) +
                          tile_floats(problem, rows, problem.out_channels)) *
                         sizeof(float);
  kernel.implementation = kImplementation;
  kernel.floating_point_operations = operations;
  return kernel;
}

}  // namespace

Kernel winograd_wide_forward_kernel(const Node& node, const ConvolutionGeometry& geometry, bool has_bias) {
  return correlation_kernel(node, forward_problem(geometry), 0, 1, has_bias ? 2 : -1, false,
                            geometry.floating_point_operations());
}

Kernel winograd_wide_backward_input_kernel(const Node& node, const ConvolutionGeometry& geometry, int w_input,
                                           int y_input) {
  return correlation_kernel(node, backward_input_problem(geometry), y_input, w_input, -1, true,
                            geometry.floating_point_operations());
}

Kernel winograd_wide_backward_filter_kernel(const Node& node, const ConvolutionGeometry& geometry) {
  const Problem problem = forward_problem(geometry);
  const WideKernels& kernels = winograd::wide_kernels_avx512();
  const int64_t rows = rows_of(problem, kTermStep);
  Kernel kernel = plain_kernel(node, [=, &kernels](const KernelArguments& args) {
    float* sums = reinterpret_cast<float*>(args.scratch);
    float* v = sums + filter_floats(problem);
    float* d = v + tile_floats(problem, rows, problem.in_channels);
    for (WideChunk chunk{0, rows}; chunk.first_tile < problem.tiles(); chunk.first_tile += rows) {
      args.team.parallel_for(rows, 1, [&](int64_t first, int64_t last) {
        kernels.transform_image(problem, chunk, args.input<float>(0), v, first, last);
        kernels.transform_gradient(problem, chunk, args.input<float>(1), d, first, last);
      });
      args.team.parallel_for(problem.points(), 1, [&](int64_t first, int64_t last) {
        kernels.accumulate_filter(problem, chunk, d, v, sums, first, last);
      });
    }
    args.team.parallel_for(problem.out_channels, 8, [&](int64_t first, int64_t last) {
      kernels.finish_filter(problem, sums, args.output<float>(0), first, last);
    });
  });
  kernel.input_layouts = {channel_blocked(geometry.x), channel_blocked(geometry.y)};
  kernel.scratch_bytes = (filter_floats(problem) + tile_floats(problem, rows, problem.in_channels) +
                          tile_floats(problem, rows, problem.out_channels)) *
                         sizeof(float);
  kernel.implementation = kImplementation;
  kernel.floating_point_operations = geometry.floating_point_operations();
  return kernel;
}

}  // namespace mox
