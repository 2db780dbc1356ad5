#include <algorithm>

#include "ops/convolution/winograd/problem.h"
#include "ops/convolution/winograd/winograd.h"

namespace mox {
namespace {

using winograd::forward_problem;
using winograd::input_gradient_problem;
using winograd::point_stride;
using winograd::Problem;
using winograd::TileChunk;
using winograd::WideKernels;

// By how many the products take tiles: as rows, as terms of a sum.
constexpr int64_t kRowStep = 6, kTermStep = 16;
// Of one point's tiles: they stay in an L2 cache of 1 MiB beside the filter's panels.
constexpr int64_t kPointFloats = 96 * 1024;
constexpr int64_t kPartChannels = 64;  // of out-channels that are worked on at a time

// Tiles at a time, a multiple of `step`, evenly over the chunks.
int64_t rows_of(const Problem& p, int64_t step) {
  const int64_t most = std::max<int64_t>(96, kPointFloats / std::max(p.in_channels, p.out_channels));
  return even_chunk(p.tiles(), most, step);
}
// How many out-channels are worked on at a time. If all tiles are one chunk, they need not be transformed
// again for the next ones: then the transformed filter of a part, or the sums of its gradient, stay in the
// caches and take an eighth of the memory with 512.
int64_t part_of(const Problem& p, int64_t rows) {
  return rows >= p.tiles() ? std::min(kPartChannels, p.out_channels) : p.out_channels;
}
Problem out_channels_of(const Problem& p, int64_t first, int64_t count) {
  Problem part = p;
  part.out_channels = std::min(count, p.out_channels - first);
  if (part.out_channels < p.out_channels) part.all_out_channels = p.out_channels;
  return part;
}

size_t filter_floats(const Problem& p) { return p.points() * p.filter_stride(); }
size_t tile_floats(const Problem& p, int64_t rows, int64_t channels) {
  return p.points() * point_stride(rows * channels);
}

Kernel correlation_kernel(const Node& node, const Problem& problem, int image, int filter, int bias,
                          bool turned, double operations) {
  const WideKernels& kernels = winograd::wide_kernels_of(problem);
  const int64_t rows = rows_of(problem, kRowStep), part_channels = part_of(problem, rows);
  const Problem largest_part = out_channels_of(problem, 0, part_channels);
  Kernel kernel = plain_kernel(node, [=, &kernels](const KernelArguments& args) {
    float* u = reinterpret_cast<float*>(args.scratch);
    float* v = u + filter_floats(largest_part);
    float* products = v + tile_floats(problem, rows, problem.in_channels);
    const auto transform = turned ? kernels.transform_turned_filter : kernels.transform_filter;
    const int64_t channel_pixels = problem.out_height * problem.out_width;
    const int64_t channel_taps = turned ? 9 : problem.in_channels * 9;  // from an out-channel to the next
    for (TileChunk chunk{0, rows}; chunk.first_tile < problem.tiles(); chunk.first_tile += rows) {
      args.team.parallel_for(rows, 1, [&](int64_t first, int64_t last) {
        kernels.transform_image(problem, chunk, args.input<float>(image), v, first, last);
      });
      for (int64_t out = 0; out < problem.out_channels; out += part_channels) {
        const Problem part = out_channels_of(problem, out, part_channels);
        if (chunk.first_tile == 0)
          args.team.parallel_for(problem.in_channels, 8, [&](int64_t first, int64_t last) {
            transform(part, args.input<float>(filter) + out * channel_taps, u, first, last);
          });
        args.team.parallel_for(problem.points(), 1, [&](int64_t first, int64_t last) {
          kernels.multiply(part, chunk, v, u, products, first, last);
        });
        args.team.parallel_for(rows, 1, [&](int64_t first, int64_t last) {
          kernels.store_outputs(part, chunk, products, bias < 0 ? nullptr : args.input<float>(bias) + out,
                                args.output<float>(0) + out * channel_pixels, first, last);
        });
      }
    }
  });
  kernel.input_layouts[image] = blocked_layout(problem, node.inputs[image].type());
  kernel.output_layouts[0] = blocked_layout(problem, node.outputs[0]);
  kernel.scratch_bytes = (filter_floats(largest_part) + tile_floats(problem, rows, problem.in_channels) +
                          tile_floats(problem, rows, part_channels)) *
                         sizeof(float);
  kernel.implementation = implementation_of(problem, "_wide");
  kernel.floating_point_operations = operations;
  return kernel;
}

}  // namespace

Kernel winograd_wide_forward_kernel(const Node& node, const ConvolutionGeometry& geometry, bool has_bias) {
  return correlation_kernel(node, forward_problem(geometry), 0, 1, has_bias ? 2 : -1, false,
                            geometry.floating_point_operations());
}

Kernel winograd_wide_input_gradient_kernel(const Node& node, const ConvolutionGeometry& geometry, int w_input,
                                           int y_input) {
  return correlation_kernel(node, input_gradient_problem(geometry), y_input, w_input, -1, true,
                            geometry.floating_point_operations());
}

Kernel winograd_wide_filter_gradient_kernel(const Node& node, const ConvolutionGeometry& geometry) {
  const Problem problem = forward_problem(geometry);
  const WideKernels& kernels = winograd::wide_kernels_of(problem);
  const int64_t rows = rows_of(problem, kTermStep), part_channels = part_of(problem, rows);
  const Problem largest_part = out_channels_of(problem, 0, part_channels);
  Kernel kernel = plain_kernel(node, [=, &kernels](const KernelArguments& args) {
    float* sums = reinterpret_cast<float*>(args.scratch);
    float* v = sums + filter_floats(largest_part);
    float* d = v + tile_floats(problem, rows, problem.in_channels);
    const int64_t channel_pixels = problem.out_height * problem.out_width;
    for (TileChunk chunk{0, rows}; chunk.first_tile < problem.tiles(); chunk.first_tile += rows) {
      args.team.parallel_for(rows, 1, [&](int64_t first, int64_t last) {
        kernels.transform_image(problem, chunk, args.input<float>(0), v, first, last);
      });
      for (int64_t out = 0; out < problem.out_channels; out += part_channels) {
        const Problem part = out_channels_of(problem, out, part_channels);
        args.team.parallel_for(rows, 1, [&](int64_t first, int64_t last) {
          kernels.transform_gradient(part, chunk, args.input<float>(1) + out * channel_pixels, d, first,
                                     last);
        });
        args.team.parallel_for(problem.points(), 1, [&](int64_t first, int64_t last) {
          kernels.accumulate_filter(part, chunk, d, v, sums, first, last);
        });
        if (chunk.first_tile + rows < problem.tiles()) continue;
        args.team.parallel_for(part.out_channels, 8, [&](int64_t first, int64_t last) {
          kernels.finish_filter(part, sums, args.output<float>(0) + out * problem.in_channels * 9, first,
                                last);
        });
      }
    }
  });
  kernel.input_layouts = {blocked_layout(problem, geometry.x), blocked_layout(problem, geometry.y)};
  kernel.scratch_bytes = (filter_floats(largest_part) + tile_floats(problem, rows, problem.in_channels) +
                          tile_floats(problem, rows, part_channels)) *
                         sizeof(float);
  kernel.implementation = implementation_of(problem, "_wide");
  kernel.floating_point_operations = geometry.floating_point_operations();
  return kernel;
}

}  // namespace mox
