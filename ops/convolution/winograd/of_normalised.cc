#include "ops/convolution/winograd/of_normalised.h"

#include <array>

#include "ops/convolution/winograd/fused_inputs.h"
#include "ops/convolution/winograd/image_groups.h"
#include "ops/convolution/winograd/internal/normalised_images.h"
#include "ops/convolution/winograd/internal/ranges_ahead.h"
#include "ops/convolution/winograd/problem.h"
#include "runtime/base/error.h"

namespace mox {
namespace {

using winograd::ImageGroups;
using winograd::Kernels;
using winograd::MemoryRange;
using winograd::point_stride;
using winograd::Problem;
using winograd::RangesAhead;
using Inputs = OfNormalisedInputs<InputPosition>;

class OfNormalised {
 public:
  OfNormalised(const ConvolutionGeometry& geometry, double epsilon, const Inputs& inputs, bool has_image)
      : problem_(winograd::forward_problem(geometry)),
        groups_(winograd::image_groups_of(geometry)),
        epsilon_(epsilon),
        inputs_(inputs),
        has_image_(has_image),
        kernels_(winograd::kernels_of(problem_)) {}

  size_t scratch_bytes(const Team& team) const {
    return (channels() + filter_floats() + int64_t{team.size()} * thread_floats()) * sizeof(float);
  }

  void operator()(const KernelArguments& args) const {
    auto* factors = reinterpret_cast<float*>(args.scratch);
    float* u = factors + channels();
    float* of_threads = u + filter_floats();
    for (int64_t c = 0; c < channels(); ++c)
      factors[c] = normalisation::channel_factor(inputs_.scale.of<float>(args)[c],
                                                 inputs_.variance.of<float>(args)[c], epsilon_);
    args.team.parallel_for(channels(), 8, [&](int64_t first, int64_t last) {
      kernels_.transform_filter(problem_, inputs_.filter.of<float>(args), u, first, last);
    });
    args.team.parallel_for_by_thread(groups_.count(problem_), 1,
                                     [&](int thread, int64_t first, int64_t last) {
                                       float* scratch = of_threads + thread * thread_floats();
                                       for (int64_t group = first; group < last; ++group)
                                         convolve(args, factors, u, group, scratch);
                                     });
  }

 private:
  int64_t channels() const { return problem_.in_channels; }
  int64_t image_floats() const { return channels() * problem_.in_height * problem_.in_width; }
  int64_t filter_floats() const { return problem_.points() * problem_.filter_stride(); }
  int64_t tile_floats() const { return 2 * problem_.points() * point_stride(groups_.chunk * channels()); }
  int64_t thread_floats() const { return tile_floats() + groups_.images * image_floats(); }

  void convolve(const KernelArguments& args, const float* factors, const float* u, int64_t group,
                float* scratch) const {
    Problem images = problem_;
    images.batch = groups_.images_of(problem_, group);
    const int64_t at = group * groups_.images * image_floats(), after = at + images.batch * image_floats();
    const auto* x = inputs_.x.of<float>(args);
    const float* residual = inputs_.residual.of<float>(args);
    std::array<MemoryRange, 2> next;
    size_t ranges = 0;
    if (group + 1 < groups_.count(problem_)) {  // most often this thread's too
      const int64_t floats = groups_.images_of(problem_, group + 1) * image_floats();
      next[ranges++] = {x + after, floats};
      if (residual) next[ranges++] = {residual + after, floats};
    }
    RangesAhead ahead(std::span<const MemoryRange>(next).first(ranges),
                      winograd::fetches_of_correlation(images, groups_.chunk));

    float* kept = has_image_ ? args.output<float>(2) + at : nullptr;
    const bool streams = kept && winograd::is_streamed(problem_.batch * image_floats(), kept);
    float* image = kept && !streams ? kept : scratch + tile_floats();
    normalise(images, x + at, residual ? residual + at : nullptr,
              {inputs_.mean.of<float>(args), factors, inputs_.offset.of<float>(args)}, image);
    auto* y = args.output<float>(0) + at;
    kernels_.correlate_images(
        images, image, u, y, winograd::is_streamed(problem_.batch * image_floats(), y),
        {.moments = args.output<float>(1) + group * groups_.chunks(problem_) * 3 * channels()}, ahead,
        groups_.chunk, scratch);
    if (streams) winograd::stream(images, image, kept);
  }

  Problem problem_;
  ImageGroups groups_;
  double epsilon_;
  Inputs inputs_;
  bool has_image_;
  const Kernels& kernels_;
};

}  // namespace

int64_t winograd_of_normalised_groups(const ConvolutionGeometry& geometry) {
  const ImageGroups groups = winograd::image_groups_of(geometry);
  return groups.exist() ? groups.all_chunks(winograd::forward_problem(geometry)) : 0;
}

Kernel winograd_of_normalised_kernel(const Node& node, const ConvolutionGeometry& geometry, double epsilon,
                                     const Team& team) {
  MOX_ASSERT(node.outputs[1].shape[0] == winograd_of_normalised_groups(geometry),
             "the node was made for the groups of this kernel");
  const auto inputs = positions<OfNormalisedInputs>(node);
  const bool has_image = node.outputs.size() > 2;
  const OfNormalised run(geometry, epsilon, inputs, has_image);
  Kernel kernel = plain_kernel(node, run);
  const Problem problem = winograd::forward_problem(geometry);
  const Layout layout = blocked_layout(problem, geometry.x);
  inputs.x.set_layout(kernel, layout);
  inputs.residual.set_layout(kernel, layout);
  kernel.output_layouts[0] = layout;
  if (has_image) kernel.output_layouts[2] = layout;
  // A group's images are read before they are written, and by the same thread.
  inputs.x.lend_to(kernel, 0);
  inputs.residual.lend_to(kernel, 0);
  kernel.scratch_bytes = run.scratch_bytes(team);
  kernel.implementation = implementation_of(problem, "_by_images");
  kernel.floating_point_operations = geometry.floating_point_operations() +
                                     (inputs.residual.given() ? 4.0 : 3.0) * geometry.x.shape.elements();
  return kernel;
}

}  // namespace mox
