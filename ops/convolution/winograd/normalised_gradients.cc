#include "ops/convolution/winograd/normalised_gradients.h"

#include <algorithm>
#include <array>

#include "ops/convolution/winograd/fused_inputs.h"
#include "ops/convolution/winograd/image_groups.h"
#include "ops/convolution/winograd/internal/normalised_images.h"
#include "ops/convolution/winograd/internal/ranges_ahead.h"
#include "ops/convolution/winograd/problem.h"
#include "ops/normalisation/batch_norm_sums.h"
#include "runtime/base/error.h"

namespace mox {
namespace {

using normalisation::ChannelGradient;
using winograd::ImageGroups;
using winograd::Kernels;
using winograd::MemoryRange;
using winograd::point_stride;
using winograd::Problem;
using winograd::RangesAhead;
using Inputs = NormalisedGradientInputs<InputPosition>;

constexpr int64_t kFilterParts = 8;  // partial sums of the filter's gradient, whatever the team

// Per-channel numbers, in this order in the scratch memory.
struct ChannelNumbers {
  float *mean_dz, *slope, *factor, *factor_before, *zeros;
  static constexpr int64_t kRows = 5;

  ChannelNumbers(float* memory, int64_t channels)
      : mean_dz(memory),
        slope(memory + channels),
        factor(memory + 2 * channels),
        factor_before(memory + 3 * channels),
        zeros(memory + 4 * channels) {}
};

class NormalisedGradients {
 public:
  NormalisedGradients(const ConvolutionGeometry& geometry, const Inputs& inputs, const Epsilons& epsilons,
                      int64_t groups_of_sums, int64_t groups_of_results)
      : forward_(winograd::forward_problem(geometry)),
        image_gradient_(winograd::input_gradient_problem(geometry)),
        groups_(winograd::image_groups_of(geometry)),
        inputs_(inputs),
        epsilons_(epsilons),
        groups_of_sums_(groups_of_sums),
        groups_of_results_(groups_of_results),
        kernels_(winograd::kernels_of(forward_)) {}

  size_t scratch_bytes(const Team& team) const {
    return (ChannelNumbers::kRows * channels() + (1 + kFilterParts) * filter_floats() + chunk_sums_floats() +
            int64_t{team.size()} * thread_floats()) *
           sizeof(float);
  }

  void operator()(const KernelArguments& args) const {
    auto* memory = reinterpret_cast<float*>(args.scratch);
    const ChannelNumbers numbers(memory, channels());
    float* u = memory + ChannelNumbers::kRows * channels();
    float* sums = u + filter_floats();
    float* chunk_sums = sums + kFilterParts * filter_floats();
    float* of_threads = chunk_sums + chunk_sums_floats();
    find_numbers(args, numbers);
    args.team.parallel_for(channels(), 8, [&](int64_t first, int64_t last) {
      kernels_.transform_turned_filter(image_gradient_, inputs_.filter.of<float>(args), u, first, last);
    });
    const int64_t groups = groups_.count(forward_);
    args.team.parallel_for_by_thread(kFilterParts, 1, [&](int thread, int64_t first, int64_t last) {
      float* scratch = of_threads + thread * thread_floats();
      for (int64_t part = first; part < last; ++part) {
        float* part_sums = sums + part * filter_floats();
        const int64_t begin = groups * part / kFilterParts, end = groups * (part + 1) / kFilterParts;
        if (begin == end) std::fill_n(part_sums, filter_floats(), 0.0f);
        for (int64_t group = begin; group < end; ++group)
          compute_gradients(args, numbers, u, part_sums, chunk_sums, group, group > begin, scratch);
      }
    });
    args.team.parallel_for(channels(), 8, [&](int64_t first, int64_t last) {
      kernels_.finish_filter(forward_, sums, kFilterParts, args.output<float>(2), first, last);
    });
    gather(chunk_sums, args.output<float>(1));
  }

 private:
  int64_t channels() const { return forward_.in_channels; }
  int64_t pixels() const { return forward_.in_height * forward_.in_width; }
  int64_t image_floats() const { return channels() * pixels(); }
  int64_t filter_floats() const { return forward_.points() * forward_.filter_stride(); }
  int64_t tile_floats() const { return 2 * forward_.points() * point_stride(groups_.chunk * channels()); }
  int64_t chunk_sums_floats() const { return groups_.all_chunks(forward_) * 2 * channels(); }
  int64_t thread_floats() const { return tile_floats() + 2 * groups_.images * image_floats(); }

  void find_numbers(const KernelArguments& args, const ChannelNumbers& numbers) const {
    const auto* sums = inputs_.sums.of<float>(args);
    const auto *scale = inputs_.scale.of<float>(args), *variance = inputs_.variance.of<float>(args),
               *scale_before = inputs_.scale_before.of<float>(args),
               *variance_before = inputs_.variance_before.of<float>(args);
    std::array<double, 2 * ImageGroups::kMostChannels> totals = {};
    for (int64_t group = 0; group < groups_of_sums_; ++group, sums += 2 * channels())
      for (int64_t i = 0; i < 2 * channels(); ++i) totals[i] += sums[i];
    for (int64_t c = 0; c < channels(); ++c) {
      const ChannelGradient gradient(totals[c], totals[channels() + c], forward_.batch * pixels(),
                                     variance[c], epsilons_.behind);
      numbers.mean_dz[c] = gradient.mean_dz;
      numbers.slope[c] = gradient.slope;
      numbers.factor[c] = normalisation::channel_factor(scale[c], variance[c], epsilons_.behind);
      numbers.factor_before[c] =
          normalisation::channel_factor(scale_before[c], variance_before[c], epsilons_.before);
      numbers.zeros[c] = 0;
      args.output<float>(3)[c] = gradient.dscale;
      args.output<float>(4)[c] = gradient.doffset;
    }
  }

  // The sums of all chunks in as many groups as are wanted.
  void gather(const float* chunk_sums, float* results) const {
    const int64_t row = 2 * channels();
    std::fill_n(results, groups_of_results_ * row, 0.0f);
    for (int64_t chunk = 0; chunk < groups_.all_chunks(forward_); ++chunk)
      for (int64_t i = 0; i < row; ++i)
        results[chunk % groups_of_results_ * row + i] += chunk_sums[chunk * row + i];
  }

  // What a group reads, `floats` of each image from `at` on.
  std::span<const MemoryRange> ranges(const KernelArguments& args, int64_t at, int64_t floats,
                                      std::array<MemoryRange, 5>& memory) const {
    size_t count = 0;
    for (const InputPosition input : {inputs_.dz, inputs_.y, inputs_.x, inputs_.more, inputs_.image})
      if (input.given()) memory[count++] = {input.of<float>(args) + at, floats};
    return std::span(memory).first(count);
  }

  void compute_gradients(const KernelArguments& args, const ChannelNumbers& numbers, const float* u,
                         float* sums, float* chunk_sums, int64_t group, bool adds, float* scratch) const {
    Problem forward = forward_, image_gradient = image_gradient_;
    forward.batch = image_gradient.batch = groups_.images_of(forward_, group);
    const int64_t at = group * groups_.images * image_floats(), after = at + forward.batch * image_floats();
    std::array<MemoryRange, 5> memory;
    std::span<const MemoryRange> next;
    if (group + 1 < groups_.count(forward_))  // most often this thread's too
      next = ranges(args, after, groups_.images_of(forward_, group + 1) * image_floats(), memory);
    RangesAhead ahead(next, winograd::fetches_of_accumulation(forward, groups_.chunk) +
                                winograd::fetches_of_correlation(image_gradient, groups_.chunk));

    const auto here = [&](InputPosition input) {
      return input.given() ? input.of<float>(args) + at : nullptr;
    };
    float* dy = scratch + tile_floats();
    differentiate(forward, args, numbers, at, dy);
    const float* image = here(inputs_.image);
    if (!image) {
      float* made = dy + groups_.images * image_floats();
      normalise(
          forward, here(inputs_.x), nullptr,
          {inputs_.mean_before.of<float>(args), numbers.factor_before, inputs_.offset_before.of<float>(args)},
          made);
      image = made;
    }
    kernels_.accumulate_images(forward, image, dy, sums, adds, ahead, groups_.chunk, scratch);
    float* dx = args.output<float>(0) + at;
    kernels_.correlate_images(
        image_gradient, dy, u, dx, winograd::is_streamed(forward_.batch * image_floats(), dx),
        {.gradient = {.x = here(inputs_.x),
                      .more = here(inputs_.more),
                      .result = here(inputs_.image),
                      .mean = inputs_.mean_before.of<float>(args),
                      .factor = numbers.factor_before,
                      .offset = inputs_.offset_before.of<float>(args),
                      .sums = chunk_sums + group * groups_.chunks(forward_) * 2 * channels()}},
        ahead, groups_.chunk, scratch);
  }

  void differentiate(const Problem& images, const KernelArguments& args, const ChannelNumbers& numbers,
                     int64_t at, float* dy) const {
    winograd::for_each_plane(images, [&](int64_t channel, int64_t value) {
      winograd::loops_of(images).differentiate({.pixels = pixels(),
                                                .width = images.lanes,
                                                .x = inputs_.y.of<float>(args) + at + value,
                                                .dy = inputs_.dz.of<float>(args) + at + value,
                                                .dy_more = nullptr,
                                                .y = nullptr,
                                                .dz = nullptr,
                                                .dx = dy + value,
                                                .mean = inputs_.mean.of<float>(args) + channel,
                                                .factor = numbers.factor + channel,
                                                .offset = numbers.zeros + channel,
                                                .mean_dz = numbers.mean_dz + channel,
                                                .slope = numbers.slope + channel,
                                                .activation = {},
                                                .mask = normalisation::MaskSource::kNone});
    });
  }

  Problem forward_, image_gradient_;
  ImageGroups groups_;
  Inputs inputs_;
  Epsilons epsilons_;
  int64_t groups_of_sums_, groups_of_results_;  // of the sums that are given, and of those that are made
  const Kernels& kernels_;
};

}  // namespace

Kernel winograd_normalised_gradients_kernel(const Node& node, const ConvolutionGeometry& geometry,
                                            const Epsilons& epsilons, const Team& team) {
  MOX_ASSERT(winograd::image_groups_of(geometry).exist(), "the rule asks whether there is a kernel");
  const auto inputs = positions<NormalisedGradientInputs>(node);
  const NormalisedGradients run(geometry, inputs, epsilons,
                                unpack<NormalisedGradientInputs>(node).sums.shape()[0],
                                node.outputs[1].shape[0]);
  const Problem problem = winograd::forward_problem(geometry);
  Kernel kernel = plain_kernel(node, run);
  for (const InputPosition input : {inputs.dz, inputs.y, inputs.x, inputs.more, inputs.image})
    input.set_layout(kernel, blocked_layout(problem, geometry.x));
  kernel.output_layouts[0] = blocked_layout(problem, geometry.x);
  // A group's images are read before they are written, and by the same thread.
  inputs.dz.lend_to(kernel, 0);
  inputs.more.lend_to(kernel, 0);
  kernel.scratch_bytes = run.scratch_bytes(team);
  kernel.implementation = implementation_of(problem, "_by_images");
  kernel.floating_point_operations =
      2 * geometry.floating_point_operations() + 10.0 * geometry.x.shape.elements();
  return kernel;
}

}  // namespace mox
