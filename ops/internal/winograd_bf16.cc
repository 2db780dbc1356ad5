#include <algorithm>

#include "ops/internal/winograd.h"
#include "ops/internal/winograd_problem.h"

namespace mox {
namespace {

using winograd::channel_blocked;
using winograd::even_chunk;
using winograd::kPanel;
using winograd::PairKernels;
using winograd::point_stride;
using winograd::Problem;
using winograd::WideChunk;

constexpr const char* kImplementation = "winograd4x4:avx512_core_bf16";
constexpr int64_t kRowStep = 6, kTermStep = 2;  // by how many products take tiles: as rows, as terms of a sum
// Of the transformed tiles and products of a chunk: more than half of an L2 cache of 1 MiB, beside panels of the filter that pass.
constexpr int64_t kChunkFloats = 150 * 1024;
// Of the transformed tiles of a chunk where all threads read all of them: what the cores' L3 cache keeps.
constexpr int64_t kSharedChunkFloats = 1024 * 1024;
constexpr int64_t kFewestPairs = 24, kMostPairs = 48;  // of tiles in a thread's own chunk
constexpr int64_t kFilterParts = 8;                    // partial sums of a filter gradient, whatever the team

const PairKernels& kernels() { return winograd::pair_kernels_avx512_bf16(); }

Problem with_small_tiles(Problem problem) {
  problem.tile = 4;
  return problem;
}

size_t chunk_floats(const Problem& p, int64_t chunk) {
  return static_cast<size_t>(p.points() *
                             (point_stride(chunk * p.in_channels / 2) + point_stride(chunk * kPanel)));
}

Kernel correlation_kernel(const Node& node, const Problem& problem, int image, int filter, int bias,
                          bool turned, double operations, const Team& team) {
  const size_t filter_floats = static_cast<size_t>(problem.points() * problem.filter_pair_stride());
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
    args.team.parallel_for(shares, 1, [&](int64_t first_share, int64_t last_share) {
      for (int64_t share = first_share; share < last_share; ++share)
        kernels().correlate(problem, args.input<BFloat16>(image), u,
                            bias < 0 ? nullptr : args.input<float>(bias), args.output<BFloat16>(0),
                            std::min(problem.tiles(), share * share_tiles),
                            std::min(problem.tiles(), (share + 1) * share_tiles), chunk,
                            u + filter_floats + static_cast<size_t>(share) * chunk_floats(problem, chunk));
    });
  });
  kernel.input_layouts[static_cast<size_t>(image)] =
      channel_blocked(node.inputs[static_cast<size_t>(image)].type());
  kernel.output_layouts[0] = channel_blocked(node.outputs[0]);
  kernel.scratch_bytes =
      (filter_floats + static_cast<size_t>(shares) * chunk_floats(problem, chunk)) * sizeof(float);
  kernel.implementation = kImplementation;
  kernel.floating_point_operations = operations;
  return kernel;
}

// How the gradient of a filter is summed up, whatever the team.
struct GradientPlan {
  Problem problem;
  bool is_local;  // a thread makes chunks of its own and their sums, all in its core's cache
  int64_t rows;   // of a chunk
  int64_t parts;  // sums of chunks that follow each other

  explicit GradientPlan(const Problem& of) : problem(of) {
    const int64_t pair_floats = problem.points() * (problem.in_channels + problem.out_channels);
    const int64_t room = kChunkFloats - static_cast<int64_t>(sum_floats());
    is_local = room / pair_floats >= kFewestPairs;
    const int64_t most = is_local ? std::min(kMostPairs, room / pair_floats)
                                  : std::max(kMostPairs, kSharedChunkFloats / pair_floats);
    rows = even_chunk(problem.tiles(), 2 * most, kTermStep);
    parts = is_local ? std::min(kFilterParts, chunks()) : 1;
  }
  int64_t chunks() const { return (problem.tiles() + rows - 1) / rows; }
  size_t sum_floats() const { return static_cast<size_t>(problem.points() * problem.filter_stride()); }
  size_t tile_floats(int64_t channels) const {
    return static_cast<size_t>(problem.points() * point_stride(rows / 2 * channels));
  }
  size_t image_floats() const { return tile_floats(problem.in_channels); }
  size_t gradient_floats() const { return tile_floats(problem.out_channels); }
};

struct Images {
  const BFloat16 *x, *dy;
};

// Part by part. Scratch memory: the sums of all parts, then what each transforms.
void sum_in_parts(const GradientPlan& plan, const Images& images, float* scratch, const Team& team) {
  team.parallel_for(plan.parts, 1, [&](int64_t first, int64_t last) {
    for (int64_t part = first; part < last; ++part) {
      float* sums = scratch + static_cast<size_t>(part) * plan.sum_floats();
      float* v = scratch + static_cast<size_t>(plan.parts) * plan.sum_floats() +
                 static_cast<size_t>(part) * (plan.image_floats() + plan.gradient_floats());
      float* d = v + plan.image_floats();
      const int64_t begin = plan.chunks() * part / plan.parts, end = plan.chunks() * (part + 1) / plan.parts;
      for (int64_t i = begin; i < end; ++i) {
        const WideChunk chunk{i * plan.rows, plan.rows};
        kernels().transform_image(plan.problem, chunk, images.x, v, 0, plan.rows / 2);
        kernels().transform_gradient(plan.problem, chunk, images.dy, d, 0, plan.rows / 2);
        kernels().accumulate_filter(plan.problem, chunk, d, v, sums, i > begin, 0, plan.problem.points());
      }
    }
  });
}

// Where the sums are too large for that: chunk by chunk, of which all threads transform a share, then sum up points of their own.
void sum_by_points(const GradientPlan& plan, const Images& images, float* scratch, const Team& team) {
  float* v = scratch + plan.sum_floats();
  float* d = v + plan.image_floats();
  for (int64_t i = 0; i < plan.chunks(); ++i) {
    const WideChunk chunk{i * plan.rows, plan.rows};
    team.parallel_for(plan.rows / 2, 1, [&](int64_t first, int64_t last) {
      kernels().transform_image(plan.problem, chunk, images.x, v, first, last);
      kernels().transform_gradient(plan.problem, chunk, images.dy, d, first, last);
    });
    team.parallel_for(plan.problem.points(), 1, [&](int64_t first, int64_t last) {
      kernels().accumulate_filter(plan.problem, chunk, d, v, scratch, i > 0, first, last);
    });
  }
}

}  // namespace

Kernel winograd_bf16_forward_kernel(const Node& node, const ConvolutionGeometry& geometry, bool has_bias,
                                    const Team& team) {
  return correlation_kernel(node, with_small_tiles(winograd::forward_problem(geometry)), 0, 1,
                            has_bias ? 2 : -1, false, geometry.floating_point_operations(), team);
}

Kernel winograd_bf16_backward_input_kernel(const Node& node, const ConvolutionGeometry& geometry, int w_input,
                                           int y_input, const Team& team) {
  return correlation_kernel(node, with_small_tiles(winograd::backward_input_problem(geometry)), y_input,
                            w_input, -1, true, geometry.floating_point_operations(), team);
}

Kernel winograd_bf16_backward_filter_kernel(const Node& node, const ConvolutionGeometry& geometry) {
  const GradientPlan plan(with_small_tiles(winograd::forward_problem(geometry)));
  Kernel kernel = plain_kernel(node, [plan](const KernelArguments& args) {
    const Images images{args.input<BFloat16>(0), args.input<BFloat16>(1)};
    float* scratch = reinterpret_cast<float*>(args.scratch);
    plan.is_local ? sum_in_parts(plan, images, scratch, args.team)
                  : sum_by_points(plan, images, scratch, args.team);
    args.team.parallel_for(plan.problem.out_channels, 8, [&](int64_t first, int64_t last) {
      kernels().finish_filter(plan.problem, scratch, plan.parts, args.output<float>(0), first, last);
    });
  });
  kernel.input_layouts = {channel_blocked(geometry.x), channel_blocked(geometry.y)};
  kernel.scratch_bytes = static_cast<size_t>(plan.parts) *
                         (plan.sum_floats() + plan.image_floats() + plan.gradient_floats()) * sizeof(float);
  kernel.implementation = kImplementation;
  kernel.floating_point_operations = geometry.floating_point_operations();
  return kernel;
}

}  // namespace mox
