#include <algorithm>
#include <array>

#include "ops/convolution/depthwise/internal/problem.h"

namespace mox {
namespace {

using depthwise::Ahead;
using depthwise::ChannelNumbers;
using depthwise::GradientRow;
using depthwise::kLanes;
using depthwise::kRowLoopsAvx2;
using depthwise::kTaps;
using depthwise::kWindow;
using depthwise::Problem;
using depthwise::row_within;
using normalisation::kFloatAvx2;

class NormalisedGradients {
 public:
  NormalisedGradients(const ConvolutionGeometry& geometry, const NormalisationBefore& before,
                      const DepthwiseGradientsInputs<InputPosition>& inputs)
      : problem_(geometry), before_(before), inputs_(inputs) {}

  size_t scratch_bytes(const Team& team) const {
    return (ChannelNumbers::floats(problem_) + problem_.planes() * kTaps * kLanes +
            int64_t{team.size()} * thread_floats()) *
           sizeof(float);
  }

  void operator()(const KernelArguments& args) const {
    const ChannelNumbers numbers(reinterpret_cast<float*>(args.scratch), problem_);
    float* of_planes = numbers.factor + ChannelNumbers::floats(problem_);
    float* of_threads = of_planes + problem_.planes() * kTaps * kLanes;
    numbers.set(problem_, inputs_.filter.of<float>(args), inputs_.scale.of<float>(args),
                inputs_.variance.of<float>(args), before_.epsilon);
    args.team.parallel_for_by_thread(problem_.planes(), 1, [&](int thread, int64_t first, int64_t last) {
      for (int64_t plane = first; plane < last; ++plane)
        compute_gradients(args, numbers, plane, of_planes + plane * kTaps * kLanes,
                          of_threads + thread * thread_floats());
    });
    args.team.parallel_for(problem_.blocks, 8, [&](int64_t first, int64_t last) {
      for (int64_t block = first; block < last; ++block) sum_filter(of_planes, block, args.output<float>(2));
    });
  }

 private:
  // Rows that are normalised, differentiated and summed together.
  int64_t strip_rows() const {
    constexpr int64_t kPixels = 128;  // 4 KiB of each image
    return std::clamp<int64_t>(kPixels / problem_.width, 1, problem_.height);
  }
  int64_t strip_floats() const { return strip_rows() * problem_.width * kLanes; }
  int64_t thread_floats() const { return 2 * strip_floats(); }

  void compute_gradients(const KernelArguments& args, const ChannelNumbers& numbers, int64_t plane,
                         float* filter_sums, float* scratch) const {
    const Problem& p = problem_;
    const int64_t channel = plane % p.blocks * kLanes;
    const float* x = inputs_.x.of<float>(args) + plane * p.image_floats();
    const float* dy = inputs_.dy.of<float>(args) + plane * p.y_floats();
    float* dz = args.output<float>(0) + plane * p.image_floats();
    float *image = scratch, *gradient = scratch + strip_floats();
    std::fill_n(filter_sums, kTaps * kLanes, 0.0f);
    std::array<float, 2 * kLanes> sums = {};
    const float *mean = inputs_.mean.of<float>(args) + channel,
                *offset = inputs_.offset.of<float>(args) + channel, *factor = numbers.factor + channel;
    for (int64_t first = 0; first < p.height; first += strip_rows()) {
      const int64_t count = std::min(strip_rows(), p.height - first), pixels = count * p.width,
                    at = first * p.width * kLanes;
      kFloatAvx2[0].normalise({.pixels = pixels,
                               .width = kLanes,
                               .x = x + at,
                               .residual = nullptr,
                               .y = image,
                               .mean = mean,
                               .factor = factor,
                               .offset = offset,
                               .activation = before_.activation});
      for (int64_t i = 0; i < count; ++i)
        differentiate_row(numbers.filter_of(plane % p.blocks), dy, first + i, image + i * p.width * kLanes,
                          gradient + i * p.width * kLanes, filter_sums, ahead(args, plane, first + i));
      std::array<float, 2 * kLanes> of_strip;
      kFloatAvx2[0].reduce({.pixels = pixels,
                            .width = kLanes,
                            .x = x + at,
                            .dy = gradient,
                            .dy_more = nullptr,
                            .y = nullptr,
                            .dz = dz + at,
                            .dx = nullptr,
                            .mean = mean,
                            .factor = factor,
                            .offset = offset,
                            .mean_dz = nullptr,
                            .slope = nullptr,
                            .activation = before_.activation,
                            .mask = normalisation::MaskSource::kNormalised},
                           of_strip.data(), of_strip.data() + kLanes);
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += of_strip[i];
    }
    float* results = args.output<float>(1) + plane / p.blocks * 2 * p.channels() + channel;
    std::copy_n(sums.data(), kLanes, results);
    std::copy_n(sums.data() + kLanes, kLanes, results + p.channels());
  }

  // Of the next strip's x and dy, and of this one's dz, at a plane's row i.
  Ahead ahead(const KernelArguments& args, int64_t plane, int64_t i) const {
    const Problem& p = problem_;
    const int64_t row = p.width * kLanes, at = plane * p.image_floats() + i * row,
                  all = p.planes() * p.image_floats(), r = (i + strip_rows()) / p.stride + 1;
    return {{row_within(inputs_.x.of<float>(args), at + strip_floats(), row, all),
             row_within(args.output<float>(0), at, row, all),
             row_within(inputs_.dy.of<float>(args), plane * p.y_floats() + r * p.out_width * kLanes, row,
                        p.planes() * p.y_floats())}};
  }

  // Row i of the image is row i + before - stride * r of the window of y's row r.
  void differentiate_row(const float* filter, const float* dy, int64_t i, const float* image, float* gradient,
                         float* filter_sums, const Ahead& ahead) const {
    const Problem& p = problem_;
    const int64_t place = i + p.before_y;
    std::array<GradientRow, kWindow> rows;
    int count = 0;
    for (int64_t r = std::min(place / p.stride, p.out_height - 1); r >= 0 && place - r * p.stride < kWindow;
         --r) {
      const int64_t at = (place - r * p.stride) * kWindow * kLanes;
      rows[count++] = {filter + at, filter_sums + at, dy + r * p.out_width * kLanes};
    }
    kRowLoopsAvx2.differentiate[p.stride - 1](rows.data(), count, {p.width, p.out_width, p.before_x}, image,
                                              gradient, ahead);
  }

  void sum_filter(const float* of_planes, int64_t block, float* results) const {
    std::array<double, kTaps* kLanes> sums = {};
    for (int64_t sample = 0; sample < problem_.batch; ++sample) {
      const float* of_plane = of_planes + (sample * problem_.blocks + block) * kTaps * kLanes;
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += of_plane[i];
    }
    for (int64_t tap = 0; tap < kTaps; ++tap)
      for (int64_t c = 0; c < kLanes; ++c)
        results[(block * kLanes + c) * kTaps + tap] = sums[tap * kLanes + c];
  }

  Problem problem_;
  NormalisationBefore before_;
  DepthwiseGradientsInputs<InputPosition> inputs_;
};

}  // namespace

Kernel depthwise_normalised_gradients_kernel(const Node& node, const ConvolutionGeometry& geometry,
                                             const NormalisationBefore& before, const Team& team) {
  const auto inputs = positions<DepthwiseGradientsInputs>(node);
  const NormalisedGradients run(geometry, before, inputs);
  Kernel kernel = plain_kernel(node, run, "depthwise:avx2");
  inputs.dy.set_layout(kernel, channel_blocked(geometry.y, kLanes));
  inputs.x.set_layout(kernel, channel_blocked(geometry.x, kLanes));
  kernel.output_layouts[0] = channel_blocked(geometry.x, kLanes);
  kernel.scratch_bytes = run.scratch_bytes(team);
  kernel.floating_point_operations =
      2 * geometry.floating_point_operations() + 8.0 * geometry.x.shape.elements();
  return kernel;
}

}  // namespace mox
