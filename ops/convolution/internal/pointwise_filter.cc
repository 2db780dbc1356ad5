#include "ops/convolution/internal/pointwise_filter.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <vector>

#include "ops/convolution/geometry/convolution_geometry.h"
#include "ops/convolution/internal/pointwise_filter_tasks.h"
#include "ops/processor/processor.h"

namespace mox {
namespace {

using pointwise_filter::kMostIn;
using pointwise_filter::kMostOut;
using pointwise_filter::kMostTerms;
using pointwise_filter::kScratchFloats;
using pointwise_filter::Problem;
using pointwise_filter::Task;

// The least filter, and where images are read without gaps the most positions, for which oneDNN's kernel and
// the conversion of its result took longer than this kernel. The conversion's share falls with the positions;
// small filters of images that the cache holds took up to twice as long as oneDNN's.
constexpr int64_t kSmallestFilter = 256 * 256;
constexpr int64_t kMostPositions = 1024, kMostPositionsInBFloat16 = 4096;
// So many for a team to share evenly: where the filter has fewer blocks, sums are cut into parts, whatever
// the team.
constexpr int64_t kFewestTasks = 8;
constexpr int64_t kStep = 16;  // elements that are added up at a time; filters have multiples of it

int64_t positions_per_term(const ConvolutionGeometry& g) { return g.x.dtype == DType::kBFloat16 ? 2 : 1; }

Problem problem_of(const ConvolutionGeometry& g) {
  Problem p = {g.extents()};
  p.lanes = processor().lanes;
  p.stride_y = g.window[0].stride;
  p.stride_x = g.window[1].stride;
  const int64_t each = positions_per_term(g), terms = (p.positions() + each - 1) / each;
  p.chunk = even_chunk(terms, kMostTerms, 1) * each;
  return p;
}

// How the gradient is cut, whatever the team.
struct GradientPlan {
  Problem problem;
  int64_t parts;  // of the sums
  std::vector<Task> tasks;

  explicit GradientPlan(const ConvolutionGeometry& geometry) : problem(problem_of(geometry)) {
    const int64_t out = problem.out_channels, in = problem.in_channels, chunks = problem.chunks();
    const int64_t outs = even_chunk(out, kMostOut, problem.lanes);
    const int64_t ins =
        even_chunk(in, kMostIn, pointwise_filter::panel_blocks(problem.lanes) * problem.lanes);
    const int64_t blocks = ((out + outs - 1) / outs) * ((in + ins - 1) / ins);
    parts = std::min(chunks, (kFewestTasks + blocks - 1) / blocks);
    for (int64_t part = 0; part < parts; ++part)
      for (int64_t o = 0; o < out; o += outs)
        for (int64_t i = 0; i < in; i += ins)
          tasks.push_back({o, std::min(outs, out - o), i, std::min(ins, in - i), chunks * part / parts,
                           chunks * (part + 1) / parts, part});
  }
  int64_t filter_floats() const { return problem.in_channels * problem.out_channels; }
};

void run(const Problem& p, const float* x, const float* dy, std::span<const Task> tasks, float* dw,
         float* scratch) {
  const auto run_tasks =
      p.lanes >= 16 ? pointwise_filter::run_tasks_avx512 : pointwise_filter::run_tasks_avx2;
  run_tasks(p, x, dy, tasks, dw, scratch);
}
void run(const Problem& p, const BFloat16* x, const BFloat16* dy, std::span<const Task> tasks, float* dw,
         float* scratch) {
  pointwise_filter::run_tasks_avx512_bf16(p, x, dy, tasks, dw, scratch);
}

// Scratch memory: what each of `shares` threads works in, then the sums of the parts.
template <typename Element>
void compute_gradient(const GradientPlan& plan, int64_t shares, const KernelArguments& args) {
  float *scratch = reinterpret_cast<float*>(args.scratch), *partial = scratch + shares * kScratchFloats;
  float* dw = args.output<float>(0);
  const int64_t tasks = std::ssize(plan.tasks);
  args.team.parallel_for(shares, 1, [&](int64_t first_share, int64_t last_share) {
    for (int64_t share = first_share; share < last_share; ++share) {
      const int64_t first = tasks * share / shares, last = tasks * (share + 1) / shares;
      run(plan.problem, args.input<Element>(0), args.input<Element>(1),
          std::span(plan.tasks).subspan(first, last - first), plan.parts == 1 ? dw : partial,
          scratch + share * kScratchFloats);
    }
  });
  if (plan.parts == 1) return;
  args.team.parallel_for(plan.filter_floats() / kStep, 64, [&](int64_t first, int64_t last) {
    for (int64_t i = first * kStep; i < last * kStep; i += kStep) {
      float sums[kStep];
      std::copy_n(partial + i, kStep, sums);
      for (int64_t part = 1; part < plan.parts; ++part)
        for (int64_t lane = 0; lane < kStep; ++lane)
          sums[lane] += partial[part * plan.filter_floats() + i + lane];
      std::copy_n(sums, kStep, dw + i);
    }
  });
}

}  // namespace

bool pointwise_filter_pays(const ConvolutionGeometry& g) {
  const bool is_low = g.x.dtype == DType::kBFloat16;
  if (g.y.dtype != g.x.dtype) return false;
  if (is_low && (!processor().bfloat16_products || processor().tiles)) return false;
  if (g.groups != 1 || g.x.shape.elements() == 0 || g.y.shape.elements() == 0) return false;
  if (g.w.shape[2] != 1 || g.w.shape[3] != 1) return false;
  for (const WindowAxis& axis : g.window)
    if (axis.before != 0 || axis.after != 0) return false;
  if (g.x.shape[1] % processor().lanes != 0 || g.y.shape[1] % processor().lanes != 0) return false;
  if (g.w.shape.elements() < kSmallestFilter) return false;
  const bool has_gaps = g.window[0].stride > 1 || g.window[1].stride > 1;
  const int64_t positions = g.y.shape[0] * g.y.shape[2] * g.y.shape[3];
  return has_gaps || positions <= (is_low ? kMostPositionsInBFloat16 : kMostPositions);
}

Kernel pointwise_filter_kernel(const Node& node, const ConvolutionGeometry& geometry, const Team& team) {
  const GradientPlan plan(geometry);
  const bool is_low = geometry.x.dtype == DType::kBFloat16;
  const int64_t shares = std::min<int64_t>(team.size(), std::ssize(plan.tasks));
  Kernel kernel = plain_kernel(
      node,
      [plan, shares, run = is_low ? compute_gradient<BFloat16> : compute_gradient<float>](
          const KernelArguments& args) { run(plan, shares, args); },
      is_low                     ? "pointwise:avx512_core_bf16"
      : plan.problem.lanes >= 16 ? "pointwise:avx512_core"
                                 : "pointwise:avx2");
  kernel.input_layouts = {channel_blocked(geometry.x, plan.problem.lanes),
                          channel_blocked(geometry.y, plan.problem.lanes)};
  const int64_t partial = plan.parts == 1 ? 0 : plan.parts * plan.filter_floats();
  kernel.scratch_bytes = (shares * kScratchFloats + partial) * sizeof(float);
  kernel.floating_point_operations = geometry.floating_point_operations();
  return kernel;
}

}  // namespace mox
