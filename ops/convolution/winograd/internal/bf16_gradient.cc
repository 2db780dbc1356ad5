#include "ops/convolution/winograd/internal/bf16_gradient.h"

#include <algorithm>

#include "ops/convolution/winograd/problem.h"
#include "ops/convolution/winograd/winograd.h"

namespace mox {
namespace {

using winograd::FilterBlock;
using winograd::kBlockColumns;
using winograd::kBlockFloats;
using winograd::kBlockRows;
using winograd::PairGradientKernels;
using winograd::point_stride;
using winograd::Problem;
using winograd::TileChunk;

constexpr const char* kImplementation = "winograd4x4:avx512_core_bf16";
constexpr int64_t kTermStep = 2;  // tiles of a pair
// Of the sums and transformed tiles of a chunk: more than half of an L2 cache of 1 MiB. Of the tiles where
// the sums alone fill it.
constexpr int64_t kChunkFloats = 150 * 1024, kLargeChunkFloats = 400 * 1024;
// Of the transformed tiles of a chunk that all threads read: what the cores' L3 cache keeps. As many as that,
// because the sums of large filters leave the cores' own caches after each chunk.
constexpr int64_t kSharedChunkFloats = 2 * 1024 * 1024;
constexpr int64_t kFewestPairs = 24, kMostPairs = 48;  // of tiles in a chunk; in one that fits the cache
// Partial sums, whatever the team: so many, but of no more than about 4 MiB.
constexpr int64_t kMostParts = 8, kMostSums = 1100 * 1024;

const PairGradientKernels& kernels() { return winograd::pair_gradient_kernels_avx512_bf16(); }

int64_t ceiling(int64_t count, int64_t step) { return (count + step - 1) / step; }

Problem gradient_problem(const ConvolutionGeometry& geometry) {
  Problem problem = winograd::forward_problem(geometry);
  problem.tile = 4;
  return problem;
}

// How the gradient is summed up, whatever the team.
struct GradientPlan {
  Problem problem;
  // A thread makes chunks of its own and their sums: where what one core wrote is slow to reach another,
  // sharing chunks of 128 channels takes twice the time.
  bool is_local;
  int64_t rows;   // of a chunk
  int64_t parts;  // sums of chunks that follow each other

  explicit GradientPlan(const Problem& of) : problem(of) {
    const int64_t pair_floats = problem.points() * (problem.in_channels + problem.out_channels);
    const int64_t room = kChunkFloats - problem.points() * problem.filter_stride();
    const bool fits_cache = room / pair_floats >= kFewestPairs;
    is_local = fits_cache || !problem.is_wide();
    const int64_t most = fits_cache ? std::min(kMostPairs, room / pair_floats)
                                    : (is_local ? kLargeChunkFloats : kSharedChunkFloats) / pair_floats;
    rows = even_chunk(problem.tiles(), 2 * std::max(kFewestPairs, most), kTermStep);
    parts = is_local ? std::min({kMostParts, kMostSums / part_floats(), chunks()}) : 1;
  }
  int64_t chunks() const { return ceiling(problem.tiles(), rows); }
  TileChunk chunk(int64_t i) const { return {i * rows, rows}; }
  int64_t blocks_a_row() const { return ceiling(problem.in_channels, kBlockColumns); }
  int64_t blocks() const { return ceiling(problem.out_channels, kBlockRows) * blocks_a_row(); }
  FilterBlock block(int64_t i) const {
    const int64_t row = i / blocks_a_row() * kBlockRows, column = i % blocks_a_row() * kBlockColumns;
    return {row, std::min(kBlockRows, problem.out_channels - row), column,
            std::min(kBlockColumns, problem.in_channels - column)};
  }
  int64_t part_floats() const { return blocks() * kBlockFloats; }
  int64_t tile_floats(int64_t channels) const { return problem.points() * point_stride(rows / 2 * channels); }
  int64_t image_floats() const { return tile_floats(problem.in_channels); }
  int64_t gradient_floats() const { return tile_floats(problem.out_channels); }
};

struct Images {
  const BFloat16 *x, *dy;
};

// Part by part. Scratch memory: the sums of all parts, then what each transforms.
void sum_in_parts(const GradientPlan& plan, const Images& images, float* scratch, float* filters,
                  const Team& team) {
  team.parallel_for(plan.parts, 1, [&](int64_t first, int64_t last) {
    for (int64_t part = first; part < last; ++part) {
      float* sums = scratch + part * plan.part_floats();
      float* v =
          scratch + plan.parts * plan.part_floats() + part * (plan.image_floats() + plan.gradient_floats());
      float* d = v + plan.image_floats();
      const int64_t begin = plan.chunks() * part / plan.parts, end = plan.chunks() * (part + 1) / plan.parts;
      for (int64_t i = begin; i < end; ++i) {
        kernels().transform_image(plan.problem, plan.chunk(i), images.x, v, 0, plan.rows / 2);
        kernels().transform_gradient(plan.problem, plan.chunk(i), images.dy, d, 0, plan.rows / 2);
        for (int64_t b = 0; b < plan.blocks(); ++b)
          kernels().accumulate(plan.problem, plan.chunk(i), plan.block(b), d, v, sums + b * kBlockFloats,
                               i > begin);
      }
    }
  });
  team.parallel_for(plan.blocks(), 1, [&](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; ++b)
      kernels().finish(plan.problem, plan.block(b), scratch + b * kBlockFloats, plan.parts,
                       plan.part_floats(), filters);
  });
}

// Where the sums are too large for that: chunk by chunk, of which all threads transform a share, then sum up
// blocks of their own. A block is finished at once after the last chunk. If that is the only one, a thread
// needs no more than one block's sums.
void sum_by_blocks(const GradientPlan& plan, const Images& images, float* scratch, float* filters,
                   const Team& team) {
  float* v = scratch + plan.part_floats();
  float* d = v + plan.image_floats();
  for (int64_t i = 0; i < plan.chunks(); ++i) {
    team.parallel_for(plan.rows / 2, 1, [&](int64_t first, int64_t last) {
      kernels().transform_image(plan.problem, plan.chunk(i), images.x, v, first, last);
      kernels().transform_gradient(plan.problem, plan.chunk(i), images.dy, d, first, last);
    });
    team.parallel_for_by_thread(plan.blocks(), 1, [&](int thread, int64_t first, int64_t last) {
      for (int64_t b = first; b < last; ++b) {
        float* sums = scratch + (plan.chunks() == 1 ? thread : b) * kBlockFloats;
        kernels().accumulate(plan.problem, plan.chunk(i), plan.block(b), d, v, sums, i > 0);
        if (i + 1 == plan.chunks())
          kernels().finish(plan.problem, plan.block(b), sums, 1, plan.part_floats(), filters);
      }
    });
  }
}

}  // namespace

Kernel winograd_bf16_filter_gradient_kernel(const Node& node, const ConvolutionGeometry& geometry) {
  const GradientPlan plan(gradient_problem(geometry));
  Kernel kernel = plain_kernel(node, [plan](const KernelArguments& args) {
    const auto sum = plan.is_local ? sum_in_parts : sum_by_blocks;
    sum(plan, {args.input<BFloat16>(0), args.input<BFloat16>(1)}, reinterpret_cast<float*>(args.scratch),
        args.output<float>(0), args.team);
  });
  kernel.input_layouts = {blocked_layout(plan.problem, geometry.x), blocked_layout(plan.problem, geometry.y)};
  kernel.scratch_bytes =
      (plan.parts * (plan.part_floats() + plan.image_floats() + plan.gradient_floats())) * sizeof(float);
  kernel.implementation = kImplementation;
  kernel.floating_point_operations = geometry.floating_point_operations();
  return kernel;
}

}  // namespace mox
