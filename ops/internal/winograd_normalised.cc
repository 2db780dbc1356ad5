#include "ops/internal/winograd_normalised.h"

#include <algorithm>
#include <array>
#include <limits>

#include "ops/instruction_set.h"
#include "ops/internal/batch_norm_loops.h"
#include "ops/internal/batch_norm_sums.h"
#include "ops/internal/winograd.h"
#include "ops/internal/winograd_problem.h"
#include "runtime/base/error.h"

namespace mox {
namespace {

using normalisation::ChannelGradient;
using winograd::Kernels;
using winograd::kLanes;
using winograd::MemoryRange;
using winograd::point_stride;
using winograd::Problem;
using Inputs = NormalisedGradientInputs;

constexpr int64_t kMostChannels = 32;  // so that filter, sums and tiles stay in an L2 cache of 1 MiB
constexpr int64_t kMostFloats =
    32 * 1024;                        // of the images of a group: six of them are in use or on their way
constexpr int64_t kMostImages = 8;    // of a group
constexpr double kMostWaste = 1.125;  // of tiles that are worked on, for each that is there
constexpr int64_t kFilterParts = 8;   // partial sums of the filter's gradient, whatever the team

// How many images are worked on together, and how many of their tiles.
struct Cut {
  int64_t images = 0, chunk = 0;

  int64_t groups(const Problem& p) const { return (p.batch + images - 1) / images; }
  int64_t chunks(const Problem& p) const { return chunks_of(p, images); }  // of a whole group
  int64_t all_chunks(const Problem& p) const {
    const int64_t before = groups(p) - 1;
    return before * chunks(p) + chunks_of(p, p.batch - before * images);
  }

 private:
  int64_t chunks_of(const Problem& p, int64_t some_images) const {
    return (some_images * p.tiles_y() * p.tiles_x() + chunk - 1) / chunk;
  }
};

// The cut that wastes least, of those the one with fewest images.
Cut cut_of(const Problem& p) {
  const int64_t floats = p.in_channels * p.in_height * p.in_width;
  Cut best;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t images = 1; images <= std::min({kMostImages, p.batch, kMostFloats / floats}); ++images)
    for (const int64_t chunk : {36, 32, 24}) {
      const Cut cut{images, chunk};
      const double waste = static_cast<double>(cut.chunks(p) * chunk) /
                           static_cast<double>(images * p.tiles_y() * p.tiles_x());
      if (waste >= least) continue;
      least = waste;
      best = cut;
    }
  return least <= kMostWaste ? best : Cut();
}

bool pays(const ConvolutionGeometry& g) {
  return g.x.dtype == DType::kFloat32 && g.x.shape == g.y.shape && g.x.shape[1] <= kMostChannels &&
         g.w.shape[2] == 3 && g.window[0].stride == 1 && winograd_pays(g);
}

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
  NormalisedGradients(const ConvolutionGeometry& geometry, const Inputs& inputs, int64_t groups_of_sums,
                      int64_t groups_of_results)
      : forward_(winograd::forward_problem(geometry)),
        backward_(winograd::backward_input_problem(geometry)),
        cut_(cut_of(forward_)),
        inputs_(inputs),
        groups_of_sums_(groups_of_sums),
        groups_of_results_(groups_of_results),
        kernels_(winograd::kernels_avx512(forward_.tile, forward_.window)) {}

  size_t scratch_bytes(const Team& team) const {
    return static_cast<size_t>(ChannelNumbers::kRows * channels() + (1 + kFilterParts) * filter_floats() +
                               chunk_sums_floats() + int64_t{team.size()} * thread_floats()) *
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
      kernels_.transform_turned_filter(backward_, args.input<float>(Inputs::kFilter), u, first, last);
    });
    const int64_t groups = cut_.groups(forward_);
    args.team.parallel_for_by_thread(kFilterParts, 1, [&](int thread, int64_t first, int64_t last) {
      float* scratch = of_threads + thread * thread_floats();
      for (int64_t part = first; part < last; ++part) {
        float* part_sums = sums + part * filter_floats();
        const int64_t begin = groups * part / kFilterParts, end = groups * (part + 1) / kFilterParts;
        if (begin == end) std::fill_n(part_sums, filter_floats(), 0.0f);
        for (int64_t group = begin; group < end; ++group)
          backpropagate(args, numbers, u, part_sums, chunk_sums, group, group > begin,
                        group + 1 < groups * last / kFilterParts, scratch);
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
  int64_t tile_floats() const { return 2 * forward_.points() * point_stride(cut_.chunk * channels()); }
  int64_t chunk_sums_floats() const { return cut_.all_chunks(forward_) * 2 * channels(); }
  int64_t thread_floats() const { return tile_floats() + 2 * cut_.images * image_floats(); }

  void find_numbers(const KernelArguments& args, const ChannelNumbers& numbers) const {
    const auto* sums = args.input<float>(Inputs::kSums);
    const auto *scale = args.input<float>(Inputs::kScale), *variance = args.input<float>(Inputs::kVariance),
               *scale_before = args.input<float>(Inputs::kScaleBefore),
               *variance_before = args.input<float>(Inputs::kVarianceBefore);
    std::array<double, 2 * kMostChannels> totals = {};
    for (int64_t group = 0; group < groups_of_sums_; ++group, sums += 2 * channels())
      for (int64_t i = 0; i < 2 * channels(); ++i) totals[static_cast<size_t>(i)] += sums[i];
    for (int64_t c = 0; c < channels(); ++c) {
      const ChannelGradient gradient(totals[static_cast<size_t>(c)],
                                     totals[static_cast<size_t>(channels() + c)], forward_.batch * pixels(),
                                     variance[c], inputs_.epsilon);
      numbers.mean_dz[c] = gradient.mean_dz;
      numbers.slope[c] = gradient.slope;
      numbers.factor[c] = normalisation::channel_factor(scale[c], variance[c], inputs_.epsilon);
      numbers.factor_before[c] =
          normalisation::channel_factor(scale_before[c], variance_before[c], inputs_.epsilon_before);
      numbers.zeros[c] = 0;
      args.output<float>(3)[c] = gradient.dscale;
      args.output<float>(4)[c] = gradient.doffset;
    }
  }

  // The sums of all chunks in as many groups as are wanted.
  void gather(const float* chunk_sums, float* results) const {
    const int64_t row = 2 * channels();
    std::fill_n(results, groups_of_results_ * row, 0.0f);
    for (int64_t chunk = 0; chunk < cut_.all_chunks(forward_); ++chunk)
      for (int64_t i = 0; i < row; ++i)
        results[chunk % groups_of_results_ * row + i] += chunk_sums[chunk * row + i];
  }

  // What a group reads, `floats` of each image from `at` on.
  std::span<const MemoryRange> ranges(const KernelArguments& args, int64_t at, int64_t floats,
                                      std::array<MemoryRange, 5>& memory) const {
    size_t count = 0;
    for (const int input : {int{Inputs::kDz}, int{Inputs::kY}, int{Inputs::kX}, inputs_.more, inputs_.image})
      if (input >= 0) memory[count++] = {args.input<float>(input) + at, floats};
    return std::span(memory).first(count);
  }

  void backpropagate(const KernelArguments& args, const ChannelNumbers& numbers, const float* u, float* sums,
                     float* chunk_sums, int64_t group, bool adds, bool has_next, float* scratch) const {
    const int64_t images = std::min(cut_.images, forward_.batch - group * cut_.images);
    const int64_t at = group * cut_.images * image_floats();
    float* dy = scratch + tile_floats();
    float* image = dy + cut_.images * image_floats();
    differentiate(args, numbers, images, at, dy);
    if (inputs_.image < 0) normalise(args, numbers, images, at, image);

    Problem forward = forward_, backward = backward_;
    forward.batch = backward.batch = images;
    std::array<MemoryRange, 5> memory;
    std::span<const MemoryRange> next;
    if (has_next) {
      const int64_t after = at + images * image_floats();
      next = ranges(args, after,
                    std::min(cut_.images * image_floats(), forward_.batch * image_floats() - after), memory);
    }
    const auto here = [&](int input) { return input < 0 ? nullptr : args.input<float>(input) + at; };
    float* dx = args.output<float>(0) + at;
    kernels_.backpropagate(
        {.forward = forward,
         .backward = backward,
         .image = inputs_.image < 0 ? image : here(inputs_.image),
         .dy = dy,
         .u = u,
         .sums = sums,
         .adds = adds,
         .dx = dx,
         .streams = winograd::is_streamed(forward_.batch * image_floats(), dx),
         .epilogue = {.gradient = {.x = here(Inputs::kX),
                                   .more = here(inputs_.more),
                                   .result = here(inputs_.image),
                                   .mean = args.input<float>(Inputs::kMeanBefore),
                                   .factor = numbers.factor_before,
                                   .offset = args.input<float>(Inputs::kOffsetBefore),
                                   .sums = chunk_sums + group * cut_.chunks(forward_) * 2 * channels()}},
         .next = next},
        cut_.chunk, scratch);
  }

  // take(plane, first channel, first value) for each plane of 16 channels.
  template <typename Take>
  void for_each_plane(int64_t images, const Take& take) const {
    const int64_t blocks = channels() / kLanes;
    for (int64_t plane = 0; plane < images * blocks; ++plane)
      take(plane % blocks * kLanes, plane * pixels() * kLanes);
  }

  void differentiate(const KernelArguments& args, const ChannelNumbers& numbers, int64_t images, int64_t at,
                     float* dy) const {
    for_each_plane(images, [&](int64_t channel, int64_t value) {
      normalisation::kFloatAvx512.differentiate({.pixels = pixels(),
                                                 .x = args.input<float>(Inputs::kY) + at + value,
                                                 .dy = args.input<float>(Inputs::kDz) + at + value,
                                                 .dy_more = nullptr,
                                                 .y = nullptr,
                                                 .dz = nullptr,
                                                 .dx = dy + value,
                                                 .mean = args.input<float>(Inputs::kMean) + channel,
                                                 .factor = numbers.factor + channel,
                                                 .offset = numbers.zeros + channel,
                                                 .mean_dz = numbers.mean_dz + channel,
                                                 .slope = numbers.slope + channel,
                                                 .activation = {},
                                                 .mask = normalisation::MaskSource::kNone});
    });
  }

  void normalise(const KernelArguments& args, const ChannelNumbers& numbers, int64_t images, int64_t at,
                 float* image) const {
    for_each_plane(images, [&](int64_t channel, int64_t value) {
      normalisation::kFloatAvx512.normalise(
          {.pixels = pixels(),
           .x = args.input<float>(Inputs::kX) + at + value,
           .residual = nullptr,
           .y = image + value,
           .mean = args.input<float>(Inputs::kMeanBefore) + channel,
           .factor = numbers.factor_before + channel,
           .offset = args.input<float>(Inputs::kOffsetBefore) + channel,
           .activation = {
               .clips = true, .low = 0, .high = std::numeric_limits<float>::infinity(), .open = true}});
    });
  }

  Problem forward_, backward_;
  Cut cut_;
  Inputs inputs_;
  int64_t groups_of_sums_, groups_of_results_;  // of the sums that are given, and of those that are made
  const Kernels& kernels_;
};

}  // namespace

bool winograd_normalised_pays(const ConvolutionGeometry& geometry) {
  return pays(geometry) && cut_of(winograd::forward_problem(geometry)).images > 0;
}

Kernel winograd_normalised_gradients_kernel(const Node& node, const ConvolutionGeometry& geometry,
                                            const NormalisedGradientInputs& inputs, const Team& team) {
  MOX_ASSERT(winograd_normalised_pays(geometry), "the rule asks whether there is a kernel");
  const NormalisedGradients run(geometry, inputs, node.inputs[Inputs::kSums].shape()[0],
                                node.outputs[1].shape[0]);
  Kernel kernel = plain_kernel(node, run);
  for (const int input : {int{Inputs::kDz}, int{Inputs::kY}, int{Inputs::kX}, inputs.more, inputs.image})
    if (input >= 0) kernel.input_layouts[static_cast<size_t>(input)] = winograd::channel_blocked(geometry.x);
  kernel.output_layouts[0] = winograd::channel_blocked(geometry.x);
  // A group's images are read before they are written, and by the same thread.
  kernel.in_place = {{0, Inputs::kDz}};
  if (inputs.more >= 0) kernel.in_place.emplace_back(0, inputs.more);
  kernel.scratch_bytes = run.scratch_bytes(team);
  kernel.implementation = "winograd6x6_by_images:avx512_core";
  kernel.floating_point_operations =
      2 * geometry.floating_point_operations() + 10.0 * static_cast<double>(geometry.x.shape.elements());
  return kernel;
}

}  // namespace mox
