#include "ops/internal/winograd.h"

#include <algorithm>
#include <cstring>

#include "ops/internal/winograd_tiles.h"

namespace mox {
namespace {

using winograd::kAvx512;
using winograd::kLanes;
using winograd::kPoints;
using winograd::Problem;

constexpr int64_t kChunk = 36;            // tiles at a time: with 32 + 64 channels their transforms fill half of an L2 cache
constexpr int64_t kFilterParts = 8;       // partial sums of a filter gradient, whatever the team
constexpr int64_t kLargestFilter = 128 * 128;  // in x out channels: the transformed filter is 36 times as large
constexpr int64_t kFewestTiles = 128;

Problem forward_problem(const ConvolutionGeometry& g) {
  return {.batch = g.x.shape[0],
          .in_channels = g.x.shape[1],
          .out_channels = g.y.shape[1],
          .in_height = g.x.shape[2],
          .in_width = g.x.shape[3],
          .out_height = g.y.shape[2],
          .out_width = g.y.shape[3],
          .before_y = g.window[0].before,
          .before_x = g.window[1].before,
          .window = static_cast<int>(g.w.shape[2])};
}

// The gradient of the image is the correlation of dy with the turned filter.
Problem backward_input_problem(const ConvolutionGeometry& g) {
  Problem p = forward_problem(g);
  std::swap(p.in_channels, p.out_channels);
  std::swap(p.in_height, p.out_height);
  std::swap(p.in_width, p.out_width);
  p.before_y = p.window - 1 - p.before_y;
  p.before_x = p.window - 1 - p.before_x;
  return p;
}

Layout channel_blocked(const TensorType& type) {
  const Shape& s = type.shape;
  const int64_t pixels = s[2] * s[3];
  return Layout::blocked(type, {s[0], s[1], s[2], s[3]}, {s[1] * pixels, pixels * kLanes, s[3] * kLanes, kLanes}, {{1, kLanes}});
}

size_t chunk_floats(const Problem& p) { return static_cast<size_t>(kPoints * kChunk * (p.in_channels + p.out_channels)); }
size_t filter_floats(const Problem& p) { return static_cast<size_t>(kPoints * p.in_channels * p.out_channels); }

Kernel correlation_kernel(const Node& node, const Problem& problem, int image, int filter, int bias, bool turned,
                          double operations, const Team& team) {
  Kernel kernel = plain_kernel(node, [=](const KernelArguments& args) {
    float* u = reinterpret_cast<float*>(args.scratch);
    const auto transform = turned ? kAvx512.transform_turned_filter : kAvx512.transform_filter;
    args.team.parallel_for(problem.in_channels, 8, [&](int64_t first, int64_t last) {
      transform(problem, args.input<float>(filter), u, first, last);
    });
    const int64_t chunks = (problem.tiles() + kChunk - 1) / kChunk, shares = args.team.size();
    args.team.parallel_for(shares, 1, [&](int64_t first_share, int64_t last_share) {
      for (int64_t share = first_share; share < last_share; ++share)
        kAvx512.correlate(problem, args.input<float>(image), u, bias < 0 ? nullptr : args.input<float>(bias),
                          args.output<float>(0), std::min(problem.tiles(), chunks * share / shares * kChunk),
                          std::min(problem.tiles(), chunks * (share + 1) / shares * kChunk), kChunk,
                          u + filter_floats(problem) + static_cast<size_t>(share) * chunk_floats(problem));
    });
  });
  kernel.input_layouts[static_cast<size_t>(image)] = channel_blocked(node.inputs[static_cast<size_t>(image)].type());
  kernel.output_layouts[0] = channel_blocked(node.outputs[0]);
  kernel.scratch_bytes = (filter_floats(problem) + static_cast<size_t>(team.size()) * chunk_floats(problem)) * sizeof(float);
  kernel.implementation = "winograd:avx512_core";
  kernel.floating_point_operations = operations;
  return kernel;
}

}  // namespace

bool winograd_pays(const ConvolutionGeometry& g) {
  static const bool has_avx512 = __builtin_cpu_supports("avx512f");
  if (!has_avx512 || g.groups != 1 || g.x.shape.elements() == 0 || g.y.shape.elements() == 0) return false;
  const int64_t window = g.w.shape[2];
  if (g.w.shape[3] != window || (window != 3 && window != 5)) return false;
  for (const WindowAxis& axis : g.window)
    if (axis.stride != 1 || axis.dilation != 1 || axis.before >= window || axis.after >= window) return false;
  const int64_t in = g.x.shape[1], out = g.y.shape[1];
  return in % kLanes == 0 && out % kLanes == 0 && in * out <= kLargestFilter &&
         forward_problem(g).tiles() >= kFewestTiles;
}

Kernel winograd_forward_kernel(const Node& node, const ConvolutionGeometry& geometry, bool has_bias, const Team& team) {
  return correlation_kernel(node, forward_problem(geometry), 0, 1, has_bias ? 2 : -1, false,
                            geometry.floating_point_operations(), team);
}

Kernel winograd_backward_input_kernel(const Node& node, const ConvolutionGeometry& geometry, int w_input, int y_input,
                                      const Team& team) {
  return correlation_kernel(node, backward_input_problem(geometry), y_input, w_input, -1, true,
                            geometry.floating_point_operations(), team);
}

Kernel winograd_backward_filter_kernel(const Node& node, const ConvolutionGeometry& geometry) {
  const Problem problem = forward_problem(geometry);
  const size_t part_floats = filter_floats(problem) + chunk_floats(problem);
  Kernel kernel = plain_kernel(node, [=](const KernelArguments& args) {
    float* sums = reinterpret_cast<float*>(args.scratch);
    float* chunks_memory = sums + kFilterParts * filter_floats(problem);
    const int64_t chunks = (problem.tiles() + kChunk - 1) / kChunk;
    args.team.parallel_for(kFilterParts, 1, [&](int64_t first, int64_t last) {
      for (int64_t part = first; part < last; ++part) {
        float* own = sums + static_cast<size_t>(part) * filter_floats(problem);
        std::memset(own, 0, filter_floats(problem) * sizeof(float));
        kAvx512.accumulate_filter(problem, args.input<float>(0), args.input<float>(1), own,
                                  std::min(problem.tiles(), chunks * part / kFilterParts * kChunk),
                                  std::min(problem.tiles(), chunks * (part + 1) / kFilterParts * kChunk), kChunk,
                                  chunks_memory + static_cast<size_t>(part) * chunk_floats(problem));
      }
    });
    args.team.parallel_for(problem.out_channels, 8, [&](int64_t first, int64_t last) {
      kAvx512.finish_filter(problem, sums, kFilterParts, args.output<float>(0), first, last);
    });
  });
  kernel.input_layouts = {channel_blocked(geometry.x), channel_blocked(geometry.y)};
  kernel.scratch_bytes = kFilterParts * part_floats * sizeof(float);
  kernel.implementation = "winograd:avx512_core";
  kernel.floating_point_operations = geometry.floating_point_operations();
  return kernel;
}

}  // namespace mox
