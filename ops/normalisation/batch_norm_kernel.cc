#include "ops/normalisation/batch_norm_kernel.h"

#include <algorithm>
#include <cmath>

#include "ops/normalisation/batch_norm_statistics.h"
#include "ops/normalisation/batch_norm_sums.h"
#include "ops/processor/processor.h"

namespace mox::normalisation {
namespace {

template <typename T>
const Loops<T>& loops(const Image& image) {
  const bool last = image.is_channels_last, in_sixteens = image.width % 16 == 0,
             is_wide = in_sixteens && processor().lanes >= 16;
  const int avx2 = !last ? in_sixteens : image.width % 8 == 0 ? 2 : 3;
  if constexpr (std::is_same_v<T, float>) {
    return is_wide ? kFloatAvx512[last] : kFloatAvx2[avx2];
  } else {
    if (is_wide && processor().bfloat16_products) return kBFloat16Avx512BFloat16[last];
    return is_wide ? kBFloat16Avx512[last] : kBFloat16Avx2[avx2];
  }
}

// What the channels are normalised with, zero where there is padding. Computed once, and not for each plane.
class Constants {
 public:
  static size_t bytes(const Image& image) { return (3 * image.padded_channels()) * sizeof(float); }
  Constants(const Image& image, std::byte* memory)
      : image_(image), values_(reinterpret_cast<float*>(memory)) {}

  const float* mean(int64_t block) const { return at(0, block * image_.width); }
  const float* factor(int64_t block) const { return at(1, block * image_.width); }
  const float* offset(int64_t block) const { return at(2, block * image_.width); }

  // `offset` may be null: then it is zero.
  void set(const Slice& slice, double epsilon, const float* scale, const float* offset, const float* mean,
           const float* variance) const {
    const int64_t first = slice.channel;
    for (int row = 0; row < 3; ++row) std::fill_n(at(row, first), slice.width, 0.0f);
    std::copy_n(mean + first, slice.channels, at(0, first));
    for (int64_t c = 0; c < slice.channels; ++c)
      at(1, first)[c] = channel_factor(scale[first + c], variance[first + c], epsilon);
    if (offset) std::copy_n(offset + first, slice.channels, at(2, first));
  }

 private:
  float* at(int row, int64_t channel) const { return values_ + row * image_.padded_channels() + channel; }

  const Image& image_;
  float* values_;
};

// The second pass: y of one plane.
template <typename T>
struct Normalise {
  const Image& image;
  const Constants& constants;
  const Activation& activation;
  const T* x;
  const T* residual;
  T* y;

  void operator()(int64_t group, int64_t block) const {
    const int64_t at = image.offset(group, block);
    loops<T>(image).normalise({.pixels = image.pixels,
                               .width = image.width,
                               .x = x + at,
                               .residual = residual ? residual + at : nullptr,
                               .y = y + at,
                               .mean = constants.mean(block),
                               .factor = constants.factor(block),
                               .offset = constants.offset(block),
                               .activation = activation});
  }
};

template <typename T>
struct Again {
  Image image;
  StatisticsInputs<InputPosition> inputs;
  double epsilon;
  Activation activation;

  void operator()(const KernelArguments& arguments) const {
    const Constants constants(image, arguments.scratch);
    const auto set = [&](const Slice& slice) {
      constants.set(slice, epsilon, inputs.scale.of<float>(arguments), inputs.offset.of<float>(arguments),
                    inputs.mean.of<float>(arguments), inputs.variance.of<float>(arguments));
    };
    const Normalise<T> normalise{
        image, constants, activation, inputs.x.of<T>(arguments), nullptr, arguments.output<T>(0)};
    run_second_passes(image, arguments.team, set, normalise);
  }
};

template <typename T>
struct Forward {
  Image image;
  ForwardOptions options;
  int64_t moment_groups;

  void operator()(const KernelArguments& arguments) const {
    const Loops<T>& run = loops<T>(image);
    const ForwardInputs<InputPosition>& inputs = options.inputs;
    const T* x = inputs.x.of<T>(arguments);
    const T* residual = inputs.residual.of<T>(arguments);
    float *mean = arguments.output<float>(1), *variance = arguments.output<float>(2);
    const float* moments = inputs.moments.of<float>(arguments);
    const Constants constants(image, arguments.scratch + (moments ? 0 : image.partial_bytes()));
    const auto statistics = [&](int64_t group, int64_t block) {
      float* partial = image.partial(arguments.scratch, group, block);
      run.statistics(x + image.offset(group, block), image.pixels, image.width, partial,
                     partial + image.width, partial + 2 * image.width);
    };
    const auto set_constants = [&](const Slice& slice) {
      constants.set(slice, options.epsilon, inputs.scale.of<float>(arguments),
                    inputs.offset.of<float>(arguments), mean, variance);
    };
    const auto combine = [&](const Slice& slice) {
      combine_statistics(image, arguments.scratch, slice, mean, variance);
      set_constants(slice);
    };
    const Normalise<T> normalise{image, constants, options.activation, x, residual, arguments.output<T>(0)};
    if (moments) {
      const auto take = [&](const Slice& slice) {
        combine_moments(moments, moment_groups, image.channels, slice.channel, slice.channels, mean,
                        variance);
        set_constants(slice);
      };
      return run_second_passes(image, arguments.team, take, normalise);
    }
    run_passes(image, arguments.team, statistics, combine, normalise);
  }
};

template <typename T>
struct Statistics {
  Image image;

  void operator()(const KernelArguments& arguments) const {
    const T* x = arguments.input<T>(0);
    arguments.team.parallel_for(image.groups * image.blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t group = i / image.blocks, block = i % image.blocks;
        float* partial = image.partial(arguments.scratch, group, block);
        loops<T>(image).statistics(x + image.offset(group, block), image.pixels, image.width, partial,
                                   partial + image.width, partial + 2 * image.width);
      }
    });
    arguments.team.parallel_for(Slice::count(image), 1, [&](int64_t begin, int64_t end) {
      for (int64_t slice = begin; slice < end; ++slice)
        combine_statistics(image, arguments.scratch, Slice(image, slice), arguments.output<float>(0),
                           arguments.output<float>(1));
    });
  }
};

template <typename T>
struct Gradient {
  Image image;
  GradientOptions options;
  int64_t sum_groups;

  void operator()(const KernelArguments& arguments) const {
    const Loops<T>& run = loops<T>(image);
    const Constants constants(image, arguments.scratch + image.partial_bytes());
    set_constants(arguments, constants);
    // Sums of dz and of dz * (x - mean), by plane; those of a slice replace those of the first plane.
    const auto reduce = [&](int64_t group, int64_t block) {
      float* partial = image.partial(arguments.scratch, group, block);
      run.reduce(plane(arguments, constants, group, block, false), partial, partial + image.width);
    };
    const auto combine = [&](const Slice& slice) { combine_sums(arguments, slice); };
    const auto differentiate = [&](int64_t group, int64_t block) {
      run.differentiate(plane(arguments, constants, group, block, true));
    };
    if (!options.inputs.sums.given())
      return run_passes(image, arguments.team, reduce, combine, differentiate);
    run_second_passes(image, arguments.team, combine, differentiate);
  }

 private:
  void set_constants(const KernelArguments& arguments, const Constants& constants) const {
    const FusedGradientInputs<InputPosition>& inputs = options.inputs;
    const float* offset = inputs.offset.of<float>(arguments);
    constexpr int64_t kSlices = 8;  // sharing out fewer costs more than it saves
    arguments.team.parallel_for(Slice::count(image), kSlices, [&](int64_t begin, int64_t end) {
      for (int64_t slice = begin; slice < end; ++slice)
        constants.set(Slice(image, slice), options.epsilon, inputs.scale.of<float>(arguments), offset,
                      inputs.mean.of<float>(arguments), inputs.variance.of<float>(arguments));
    });
  }

  void combine_sums(const KernelArguments& arguments, const Slice& slice) const {
    const int64_t row = image.width, first = slice.channel, channels = slice.channels;
    double dz_sums[Slice::kWidest] = {}, products[Slice::kWidest] = {};
    const auto add = [&](const float* sums, int64_t to_products, int64_t count) {
      for (int64_t c = 0; c < count; ++c) {
        dz_sums[c] += sums[c];
        products[c] += sums[to_products + c];
      }
    };
    if (const float* sums = options.inputs.sums.of<float>(arguments)) {
      sums += first;
      for (int64_t group = 0; group < sum_groups; ++group, sums += 2 * image.channels)
        add(sums, image.channels, channels);
    } else {
      for (int64_t group = 0; group < image.groups; ++group)
        add(image.partial(arguments.scratch, group, slice.block) + slice.first, row, slice.width);
    }
    const float* variance = options.inputs.variance.of<float>(arguments) + first;
    float *dscale = arguments.output<float>(1) + first, *doffset = arguments.output<float>(2) + first;
    float* total = image.partial(arguments.scratch, 0, slice.block) + slice.first;
    std::fill_n(total, slice.width, 0.0f);
    std::fill_n(total + row, slice.width, 0.0f);
    for (int64_t c = 0; c < channels; ++c) {
      const ChannelGradient gradient(dz_sums[c], products[c], image.values(), variance[c], options.epsilon);
      total[c] = gradient.mean_dz;
      total[row + c] = gradient.slope;
      doffset[c] = gradient.doffset;
      dscale[c] = gradient.dscale;
    }
  }

  GradientPlane<T> plane(const KernelArguments& arguments, const Constants& constants, int64_t group,
                         int64_t block, bool second) const {
    const int64_t offset = image.offset(group, block);
    const auto at = [&](InputPosition input) {
      return input.given() ? input.of<T>(arguments) + offset : nullptr;
    };
    const float* totals = image.partial(arguments.scratch, 0, block);
    T* dz = options.has_dz ? arguments.output<T>(3) + offset : nullptr;
    GradientPlane<T> result{.pixels = image.pixels,
                            .width = image.width,
                            .x = at(options.inputs.x),
                            .dy = at(options.inputs.dy),
                            .dy_more = at(options.inputs.dy_more),
                            .y = at(options.inputs.y),
                            .dz = dz,
                            .dx = arguments.output<T>(0) + offset,
                            .mean = constants.mean(block),
                            .factor = constants.factor(block),
                            .offset = constants.offset(block),
                            .mean_dz = totals,
                            .slope = totals + image.width,
                            .activation = options.activation,
                            .mask = options.mask};
    if (second && dz) {  // the first pass has chosen
      result.dy = dz;
      result.dy_more = nullptr;
      result.mask = MaskSource::kNone;
    }
    return result;
  }
};

template <template <typename> typename Run, typename... Arguments>
KernelFunction run_for(DType dtype, const Arguments&... arguments) {
  if (dtype == DType::kBFloat16) return Run<BFloat16>{arguments...};
  return Run<float>{arguments...};
}

Kernel with_layouts(const Node& node, const TensorType& image, const Layout& layout) {
  Kernel kernel;
  for (const Tensor& input : node.inputs)
    kernel.input_layouts.push_back(input.type() == image ? layout : Layout::plain(input.type()));
  for (const TensorType& output : node.outputs)
    kernel.output_layouts.push_back(output == image ? layout : Layout::plain(output));
  kernel.implementation = "planes:" + layout.to_string();
  return kernel;
}

// In which to normalise the image `x` of this type, as it exists.
Layout offered_layout(const KernelRequest& request, InputPosition x, const TensorType& type) {
  return normalised_layout(type, request.input_layouts[x.index]);
}

}  // namespace

Kernel forward_kernel(const KernelRequest& request, const ForwardOptions& options) {
  const Node& node = request.node;
  const ForwardInputs<Tensor> inputs = unpack<ForwardInputs>(node);
  const TensorType& type = inputs.x.type();
  const Layout layout = offered_layout(request, options.inputs.x, type);
  const Image image(type, layout);
  Kernel kernel = with_layouts(node, type, layout);
  const bool has_residual = inputs.residual.defined(), has_moments = inputs.moments.defined();
  kernel.scratch_bytes = Constants::bytes(image) + (has_moments ? 0 : image.partial_bytes());
  options.inputs.x.lend_to(kernel, 0);
  options.inputs.residual.lend_to(kernel, 0);
  kernel.floating_point_operations =
      ((has_moments ? 3.0 : 7.0) + (has_residual ? 1.0 : 0.0)) * type.shape.elements();
  const int64_t groups = has_moments ? inputs.moments.shape()[0] : 0;
  kernel.instantiate = [run = run_for<Forward>(type.dtype, image, options, groups)] { return run; };
  return kernel;
}

Kernel statistics_kernel(const KernelRequest& request) {
  const TensorType type = request.node.inputs[0].type();
  const Layout layout = offered_layout(request, {.index = 0}, type);
  Kernel kernel = with_layouts(request.node, type, layout);
  const Image image(type, layout);
  kernel.scratch_bytes = image.partial_bytes();
  kernel.floating_point_operations = 4.0 * type.shape.elements();
  kernel.instantiate = [run = run_for<Statistics>(type.dtype, image)] { return run; };
  return kernel;
}

Kernel again_kernel(const KernelRequest& request, double epsilon, const Activation& activation) {
  const auto inputs = positions<StatisticsInputs>(request.node);
  const TensorType type = unpack<StatisticsInputs>(request.node).x.type();
  const Layout layout = offered_layout(request, inputs.x, type);
  Kernel kernel = with_layouts(request.node, type, layout);
  const Image image(type, layout);
  kernel.scratch_bytes = Constants::bytes(image);
  kernel.floating_point_operations = 3.0 * type.shape.elements();
  kernel.instantiate = [run = run_for<Again>(type.dtype, image, inputs, epsilon, activation)] { return run; };
  return kernel;
}

Kernel gradient_kernel(const KernelRequest& request, const GradientOptions& options) {
  const Node& node = request.node;
  const FusedGradientInputs<InputPosition>& inputs = options.inputs;
  const TensorType& type = node.outputs[0];
  const Layout layout = offered_layout(request, inputs.x, type);
  const Image image(type, layout);
  Kernel kernel = with_layouts(node, type, layout);
  kernel.scratch_bytes = image.partial_bytes() + Constants::bytes(image);
  if (options.has_dz) {
    inputs.dy.lend_to(kernel, 3);
    inputs.dy_more.lend_to(kernel, 3);
  }
  inputs.x.lend_to(kernel, 0);
  if (!options.has_dz) inputs.dy.lend_to(kernel, 0);
  const bool has_sums = inputs.sums.given();
  kernel.floating_point_operations = (has_sums ? 5.0 : 10.0) * type.shape.elements();
  const int64_t groups = has_sums ? unpack<FusedGradientInputs>(node).sums.shape()[0] : 0;
  kernel.instantiate = [run = run_for<Gradient>(type.dtype, image, options, groups)] { return run; };
  return kernel;
}

}  // namespace mox::normalisation
