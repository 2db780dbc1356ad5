#include <algorithm>
#include <array>

#include "ops/convolution/depthwise/internal/problem.h"
#include "ops/normalisation/batch_norm_statistics.h"
#include "ops/processor/processor.h"

namespace mox {
namespace {

using depthwise::Ahead;
using depthwise::ChannelNumbers;
using depthwise::FilterRow;
using depthwise::kLanes;
using depthwise::kRowLoopsAvx2;
using depthwise::kWindow;
using depthwise::Problem;
using depthwise::row_within;
using normalisation::kFloatAvx2;

class OfNormalised {
 public:
  OfNormalised(const ConvolutionGeometry& geometry, const NormalisationBefore& before,
               const DepthwiseOfNormalisedInputs<InputPosition>& inputs)
      : problem_(geometry),
        results_(geometry.y, channel_blocked(geometry.y, kLanes)),
        before_(before),
        inputs_(inputs) {}

  size_t scratch_bytes(const Team& team) const {
    return results_.partial_bytes() +
           (ChannelNumbers::floats(problem_) + int64_t{team.size()} * thread_floats()) * sizeof(float);
  }

  void operator()(const KernelArguments& args) const {
    const ChannelNumbers numbers(reinterpret_cast<float*>(args.scratch + results_.partial_bytes()), problem_);
    float* of_threads = numbers.factor + ChannelNumbers::floats(problem_);
    numbers.set(problem_, inputs_.filter.of<float>(args), inputs_.scale.of<float>(args),
                inputs_.variance.of<float>(args), before_.epsilon);
    args.team.parallel_for_by_thread(problem_.planes(), 1, [&](int thread, int64_t first, int64_t last) {
      float* rows = of_threads + thread * thread_floats();
      std::fill_n(rows, thread_floats(), 0.0f);  // what is beside the image stays so
      for (int64_t plane = first; plane < last; ++plane) convolve(args, numbers, plane, rows);
    });
    args.team.parallel_for(normalisation::Slice::count(results_), 1, [&](int64_t begin, int64_t end) {
      for (int64_t slice = begin; slice < end; ++slice)
        combine_statistics(results_, args.scratch, {results_, slice}, args.output<float>(1),
                           args.output<float>(2));
    });
  }

 private:
  // The rows of a window, normalised, with a pixel of padding on either side.
  int64_t row_floats() const { return (problem_.width + 2) * kLanes; }
  int64_t thread_floats() const { return kWindow * row_floats(); }

  void normalise(const KernelArguments& args, const ChannelNumbers& numbers, int64_t channel, const float* x,
                 float* to) const {
    kFloatAvx2[0].normalise({.pixels = problem_.width,
                             .width = kLanes,
                             .x = x,
                             .residual = nullptr,
                             .y = to,
                             .mean = inputs_.mean.of<float>(args) + channel,
                             .factor = numbers.factor + channel,
                             .offset = inputs_.offset.of<float>(args) + channel,
                             .activation = before_.activation});
  }

  void convolve(const KernelArguments& args, const ChannelNumbers& numbers, int64_t plane,
                float* rows) const {
    const Problem& p = problem_;
    const int64_t sample = plane / p.blocks, block = plane % p.blocks;
    const float* x = inputs_.x.of<float>(args) + plane * p.image_floats();
    float* y = args.output<float>(0) + plane * p.y_floats();
    const auto row = [&](int64_t i) { return rows + i % kWindow * row_floats(); };
    int64_t next = 0;  // the first row that is not normalised yet
    for (int64_t r = 0; r < p.out_height; ++r) {
      const int64_t top = r * p.stride - p.before_y, end = std::min(top + kWindow, p.height);
      for (; next < end; ++next)
        normalise(args, numbers, block * kLanes, x + next * p.width * kLanes, row(next) + kLanes);
      std::array<FilterRow, kWindow> window;
      int count = 0;
      for (int64_t i = std::max<int64_t>(top, 0); i < end; ++i)
        window[count++] = {numbers.filter_of(block) + (i - top) * kWindow * kLanes,
                           row(i) + (1 - p.before_x) * kLanes};
      kRowLoopsAvx2.convolve[p.stride - 1](window.data(), count, p.out_width, y + r * p.out_width * kLanes,
                                           ahead(args, plane, next, r));
    }
    float* partial = results_.partial(args.scratch, sample, block);
    kFloatAvx2[0].statistics(y, p.out_height * p.out_width, kLanes, partial, partial + kLanes,
                             partial + 2 * kLanes);
  }

  // Of the rows that are normalised for the next row of y, and of y, when a plane's row `next` is the first
  // that is not normalised yet.
  Ahead ahead(const KernelArguments& args, int64_t plane, int64_t next, int64_t r) const {
    constexpr int64_t kFloats = 1024;  // so far away, at least, from what is read now
    const Problem& p = problem_;
    const int64_t row = p.width * kLanes, at = plane * p.image_floats() + next * row + kFloats,
                  y_at = plane * p.y_floats() + r * p.out_width * kLanes + kFloats;
    const float *x = inputs_.x.of<float>(args), *y = args.output<float>(0);
    return {{row_within(x, at, row, p.planes() * p.image_floats()),
             row_within(x, at + (p.stride - 1) * row, row, p.planes() * p.image_floats()),
             row_within(y, y_at, row, p.planes() * p.y_floats())}};
  }

  Problem problem_;
  normalisation::Image results_;
  NormalisationBefore before_;
  DepthwiseOfNormalisedInputs<InputPosition> inputs_;
};

bool is_from_end_to_end(const WindowAxis& axis) {
  if (axis.size != depthwise::kWindow || axis.dilation != 1) return false;
  if (axis.stride == 1) return axis.before == 1 && axis.output == axis.input;
  return axis.stride == 2 && axis.output == (axis.input + 1) / 2 &&
         (axis.before == 1 || (axis.before == 0 && axis.input % 2 == 0));
}

}  // namespace

bool depthwise_is_fused(const ConvolutionGeometry& g) {
  const int64_t channels = g.x.shape[1];
  return processor().lanes == kLanes && g.x.dtype == DType::kFloat32 && g.w.dtype == DType::kFloat32 &&
         g.groups == channels && g.y.shape[1] == channels && channels % kLanes == 0 &&
         g.window[0].stride == g.window[1].stride && is_from_end_to_end(g.window[0]) &&
         is_from_end_to_end(g.window[1]) && g.x.shape.elements() > 0;
}

Kernel depthwise_of_normalised_kernel(const Node& node, const ConvolutionGeometry& geometry,
                                      const NormalisationBefore& before, const Team& team) {
  const auto inputs = positions<DepthwiseOfNormalisedInputs>(node);
  const OfNormalised run(geometry, before, inputs);
  Kernel kernel = plain_kernel(node, run, "depthwise:avx2");
  inputs.x.set_layout(kernel, channel_blocked(geometry.x, kLanes));
  kernel.output_layouts[0] = channel_blocked(geometry.y, kLanes);
  kernel.scratch_bytes = run.scratch_bytes(team);
  kernel.floating_point_operations = geometry.floating_point_operations() +
                                     3.0 * geometry.x.shape.elements() + 4.0 * geometry.y.shape.elements();
  return kernel;
}

}  // namespace mox
