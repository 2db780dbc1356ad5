#include "ops/internal/batch_norm_kernel.h"

#include <algorithm>
#include <cmath>

#include "ops/instruction_set.h"
#include "ops/internal/channel_view.h"
#include "runtime/base/error.h"

namespace mox::normalisation {
namespace {

constexpr int64_t kWidest = 16;

bool has(InstructionSet set) { return instruction_set() >= set; }

template <typename T>
const Loops<T>& loops(int64_t width) {
  if constexpr (std::is_same_v<T, float>) {
    return width == 16 && has(InstructionSet::kAvx512) ? kFloatAvx512 : kFloatAvx2[width == 16];
  } else {
    if (width == 16 && has(InstructionSet::kAvx512BFloat16)) return kBFloat16Avx512BFloat16;
    return width == 16 && has(InstructionSet::kAvx512) ? kBFloat16Avx512 : kBFloat16Avx2[width == 16];
  }
}

// An image as planes, with two numbers a channel of each plane in scratch memory.
struct Image {
  ChannelView view;
  int64_t plane_elements() const { return view.inner * view.width; }
  int64_t offset(int64_t sample, int64_t block) const {
    return (sample * view.blocks + block) * plane_elements();
  }
  int64_t values() const { return view.outer * view.inner; }  // of a channel
  // Whether threads take samples, as in convolutions, and not blocks of channels: each finds in its caches what it computed itself,
  // and where the cores' caches are not one (or far from each other) little else is fast. (resnet_v1_20 with batches of 128 on two
  // such cores: the normalisations of 32 and 64 channels take 11 ms instead of 20.) For images that stay in the caches, and whose
  // blocks are too large for the second pass over them to find the first one's values in a core's own.
  bool goes_by_samples() const {
    const int64_t block_floats = view.outer * plane_elements();
    return block_floats > 64 * 1024 && block_floats * view.blocks <= 2 * 1024 * 1024;
  }
  int64_t channels_in(int64_t block) const {
    return std::min(view.width, view.channels - block * view.width);
  }
  size_t partial_bytes() const {
    return static_cast<size_t>(2 * view.outer * view.padded_channels()) * sizeof(float);
  }
  float* partial(std::byte* scratch, int64_t sample, int64_t block) const {
    return reinterpret_cast<float*>(scratch) + 2 * (block * view.outer + sample) * view.width;
  }
};

// combine(block) for all blocks, then second(sample, block) for all planes, beginning with those that were made last.
template <typename Combine, typename Second>
void run_second_passes(const Image& image, const Team& team, Combine combine, Second second) {
  const int64_t blocks = image.view.blocks;
  team.parallel_for(blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) combine(block);
  });
  team.parallel_for_backwards(blocks * image.view.outer, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = end; i-- > begin;) second(i / blocks, i % blocks);
  });
}

// first(sample, block) for all planes, then combine(block) for their block, then second(sample, block).
template <typename First, typename Combine, typename Second>
void run_by_block(const Image& image, const Team& team, First first, Combine combine, Second second) {
  const int64_t blocks = image.view.blocks, samples = image.view.outer;
  if (!image.goes_by_samples() && (blocks % team.size() == 0 || blocks >= 8 * team.size())) {
    team.parallel_for(blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        for (int64_t sample = 0; sample < samples; ++sample) first(sample, block);
        combine(block);
        // The last planes are those that are still in the cache.
        for (int64_t sample = samples; sample-- > 0;) second(sample, block);
      }
    });
    return;
  }
  team.parallel_for(blocks * samples, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) first(i / blocks, i % blocks);
  });
  run_second_passes(image, team, combine, second);
}

// Per-channel values of one block, zero where there is padding.
struct alignas(64) Lanes {
  float values[kWidest] = {};
};
Lanes lanes_of(const float* per_channel, const Image& image, int64_t block) {
  Lanes lanes;
  std::copy_n(per_channel + block * image.view.width, image.channels_in(block), lanes.values);
  return lanes;
}
// scale / sqrt(variance + epsilon)
Lanes factor_of(const Lanes& scale, const Lanes& variance, double epsilon, int64_t channels) {
  Lanes factor;
  for (int64_t c = 0; c < channels; ++c)
    factor.values[c] = channel_factor(scale.values[c], variance.values[c], epsilon);
  return factor;
}

// Mean and variance of a block from those of its planes.
void combine_statistics(const Image& image, std::byte* scratch, int64_t block, float* mean, float* variance) {
  const auto pixels = static_cast<double>(image.view.inner), samples = static_cast<double>(image.view.outer);
  const int64_t width = image.view.width, first = block * width, channels = image.channels_in(block);
  double means[kWidest] = {}, squares[kWidest] = {};
  for (int64_t sample = 0; sample < image.view.outer; ++sample) {
    const float* partial = image.partial(scratch, sample, block);
    for (int64_t c = 0; c < width; ++c) means[c] += partial[c];
  }
  for (double& m : means) m /= samples;
  for (int64_t sample = 0; sample < image.view.outer; ++sample) {
    const float* partial = image.partial(scratch, sample, block);
    for (int64_t c = 0; c < width; ++c) {
      const double distance = partial[c] - means[c];
      squares[c] += partial[width + c] + pixels * distance * distance;
    }
  }
  for (int64_t c = 0; c < channels; ++c) {
    mean[first + c] = static_cast<float>(means[c]);
    variance[first + c] = static_cast<float>(squares[c] / static_cast<double>(image.values()));
  }
}

// The same from the moments of groups of pixels, [groups][3][channels].
void combine_moments(const Image& image, const float* moments, int64_t groups, int64_t block, float* mean,
                     float* variance) {
  const int64_t row = image.view.channels, first = block * image.view.width,
                channels = image.channels_in(block);
  const auto values = static_cast<double>(image.values());
  double means[kWidest] = {}, squares[kWidest] = {};
  for (int64_t group = 0; group < groups; ++group) {
    const float* at = moments + 3 * group * row + first;
    for (int64_t c = 0; c < channels; ++c) means[c] += static_cast<double>(at[c]) * at[row + c];
  }
  for (double& m : means) m /= values;
  for (int64_t group = 0; group < groups; ++group) {
    const float* at = moments + 3 * group * row + first;
    for (int64_t c = 0; c < channels; ++c) {
      const double distance = at[row + c] - means[c];
      squares[c] += at[2 * row + c] + at[c] * distance * distance;
    }
  }
  for (int64_t c = 0; c < channels; ++c) {
    mean[first + c] = static_cast<float>(means[c]);
    variance[first + c] = static_cast<float>(squares[c] / values);
  }
}

// The second pass: y of one plane.
template <typename T>
struct Normalise {
  const Image& image;
  double epsilon;
  const Activation& activation;
  const T* x;
  const T* residual;
  T* y;

  void operator()(int64_t sample, int64_t block, const float* scale, const float* offset, const float* mean,
                  const float* variance) const {
    const Lanes means = lanes_of(mean, image, block), offsets = lanes_of(offset, image, block),
                factors = factor_of(lanes_of(scale, image, block), lanes_of(variance, image, block), epsilon,
                                    image.channels_in(block));
    const int64_t at = image.offset(sample, block);
    loops<T>(image.view.width)
        .normalise({image.view.inner, x + at, residual ? residual + at : nullptr, y + at, means.values,
                    factors.values, offsets.values, activation});
  }
};

template <typename T>
struct Again {
  Image image;
  double epsilon;
  Activation activation;

  void operator()(const KernelArguments& arguments) const {
    const Normalise<T> normalise{
        image, epsilon, activation, arguments.input<T>(0), nullptr, arguments.output<T>(0)};
    const int64_t blocks = image.view.blocks;
    arguments.team.parallel_for(blocks * image.view.outer, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        normalise(i / blocks, i % blocks, arguments.input<float>(1), arguments.input<float>(2),
                  arguments.input<float>(3), arguments.input<float>(4));
    });
  }
};

template <typename T>
struct Forward {
  Image image;
  ForwardOptions options;
  int64_t groups;  // of the moments

  void operator()(const KernelArguments& arguments) const {
    const Loops<T>& run = loops<T>(image.view.width);
    const T* x = arguments.input<T>(0);
    const T* residual = options.residual < 0 ? nullptr : arguments.input<T>(options.residual);
    float *mean = arguments.output<float>(1), *variance = arguments.output<float>(2);
    const auto statistics = [&](int64_t sample, int64_t block) {
      float* partial = image.partial(arguments.scratch, sample, block);
      run.statistics(x + image.offset(sample, block), image.view.inner, partial, partial + image.view.width);
    };
    const auto combine = [&](int64_t block) {
      combine_statistics(image, arguments.scratch, block, mean, variance);
    };
    const Normalise<T> normalise{image, options.epsilon, options.activation,
                                 x,     residual,        arguments.output<T>(0)};
    const auto second = [&](int64_t sample, int64_t block) {
      normalise(sample, block, arguments.input<float>(1), arguments.input<float>(2), mean, variance);
    };
    if (options.moments >= 0) {
      const float* moments = arguments.input<float>(options.moments);
      const auto take = [&](int64_t block) {
        combine_moments(image, moments, groups, block, mean, variance);
      };
      return run_second_passes(image, arguments.team, take, second);
    }
    run_by_block(image, arguments.team, statistics, combine, second);
  }
};

template <typename T>
struct Backward {
  Image image;
  BackwardOptions options;
  int64_t groups;  // of the sums

  void operator()(const KernelArguments& arguments) const {
    const Loops<T>& run = loops<T>(image.view.width);
    const auto per_channel = [&](int input, int64_t block) {
      return input < 0 ? Lanes() : lanes_of(arguments.input<float>(input), image, block);
    };
    float *dscale = arguments.output<float>(1), *doffset = arguments.output<float>(2);
    // Sums of dz and of dz * (x - mean), by plane; those of the block replace those of its first plane.
    const auto reduce = [&](int64_t sample, int64_t block) {
      float* partial = image.partial(arguments.scratch, sample, block);
      const Constants constants(*this, arguments, block);
      run.reduce(plane(arguments, constants, sample, block, false), partial, partial + image.view.width);
    };
    const auto combine = [&](int64_t block) {
      const Lanes variance = per_channel(options.variance, block);
      const int64_t width = image.view.width;
      double dz_sums[kWidest] = {}, products[kWidest] = {};
      const auto add = [&](const float* sums, int64_t row, int64_t channels) {
        for (int64_t c = 0; c < channels; ++c) {
          dz_sums[c] += sums[c];
          products[c] += sums[row + c];
        }
      };
      if (options.sums >= 0) {
        const float* sums = arguments.input<float>(options.sums) + block * width;
        for (int64_t group = 0; group < groups; ++group, sums += 2 * image.view.channels)
          add(sums, image.view.channels, image.channels_in(block));
      } else {
        for (int64_t sample = 0; sample < image.view.outer; ++sample)
          add(image.partial(arguments.scratch, sample, block), width, width);
      }
      float* total = image.partial(arguments.scratch, 0, block);
      for (int64_t c = 0; c < width; ++c) {
        const double sum = dz_sums[c], product = products[c];
        const auto values = static_cast<double>(image.values());
        const double square = static_cast<double>(variance.values[c]) + options.epsilon;
        const bool is_padding = c >= image.channels_in(block);
        total[c] = is_padding ? 0 : static_cast<float>(sum / values);
        total[image.view.width + c] = is_padding ? 0 : static_cast<float>(product / values / square);
        if (is_padding) continue;
        doffset[block * image.view.width + c] = static_cast<float>(sum);
        dscale[block * image.view.width + c] = static_cast<float>(product / std::sqrt(square));
      }
    };
    const auto differentiate = [&](int64_t sample, int64_t block) {
      const Constants constants(*this, arguments, block);
      run.differentiate(plane(arguments, constants, sample, block, true));
    };
    if (options.sums < 0) return run_by_block(image, arguments.team, reduce, combine, differentiate);
    run_second_passes(image, arguments.team, combine, differentiate);
  }

 private:
  struct Constants {
    Constants(const Backward& self, const KernelArguments& arguments, int64_t block) {
      const Image& image = self.image;
      const auto take = [&](int input) { return lanes_of(arguments.input<float>(input), image, block); };
      mean = take(self.options.mean);
      factor =
          factor_of(take(1), take(self.options.variance), self.options.epsilon, image.channels_in(block));
      if (self.options.offset >= 0) offset = take(self.options.offset);
    }
    Lanes mean, factor, offset;
  };

  BackwardPlane<T> plane(const KernelArguments& arguments, const Constants& constants, int64_t sample,
                         int64_t block, bool second) const {
    const int64_t offset = image.offset(sample, block);
    const auto at = [&](int input) { return input < 0 ? nullptr : arguments.input<T>(input) + offset; };
    const float* totals = image.partial(arguments.scratch, 0, block);
    T* dz = options.has_dz ? arguments.output<T>(3) + offset : nullptr;
    BackwardPlane<T> result{.pixels = image.view.inner,
                            .x = at(0),
                            .dy = at(options.dy),
                            .dy_more = at(options.dy_more),
                            .y = at(options.y),
                            .dz = dz,
                            .dx = arguments.output<T>(0) + offset,
                            .mean = constants.mean.values,
                            .factor = constants.factor.values,
                            .offset = constants.offset.values,
                            .mean_dz = totals,
                            .slope = totals + image.view.width,
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

Image image_of(const TensorType& type, const Layout& layout) {
  const auto view = channel_view(type, layout);
  MOX_ASSERT(view.has_value(), "a layout in blocks of channels has a view");
  return {*view};
}

}  // namespace

Layout blocked_layout(const TensorType& image, const Layout& offered) {
  const auto view = channel_view(image, offered);
  if (view && !offered.blocks().empty() && (view->width == 8 || view->width == 16)) return offered;
  const Shape& s = image.shape;
  const int64_t padded = (s[1] + kWidest - 1) / kWidest * kWidest, pixels = s[2] * s[3];
  return Layout::blocked(image, {s[0], padded, s[2], s[3]},
                         {padded * pixels, pixels * kWidest, s[3] * kWidest, kWidest}, {{1, kWidest}});
}

Kernel forward_kernel(const KernelRequest& request, const ForwardOptions& options) {
  const Node& node = request.node;
  const TensorType& type = node.inputs[0].type();
  const Layout layout = blocked_layout(type, request.input_layouts[0]);
  const Image image = image_of(type, layout);
  Kernel kernel = with_layouts(node, type, layout);
  const bool has_residual = options.residual >= 0, has_moments = options.moments >= 0;
  if (!has_moments) kernel.scratch_bytes = image.partial_bytes();
  kernel.in_place = {{0, 0}};
  if (has_residual) kernel.in_place.emplace_back(0, options.residual);
  kernel.floating_point_operations =
      ((has_moments ? 3.0 : 7.0) + (has_residual ? 1.0 : 0.0)) * static_cast<double>(type.shape.elements());
  const int64_t groups = has_moments ? node.inputs[static_cast<size_t>(options.moments)].shape()[0] : 0;
  kernel.instantiate = [run = run_for<Forward>(type.dtype, image, options, groups)] { return run; };
  return kernel;
}

Kernel again_kernel(const KernelRequest& request, double epsilon, const Activation& activation) {
  const TensorType& type = request.node.inputs[0].type();
  const Layout layout = blocked_layout(type, request.input_layouts[0]);
  Kernel kernel = with_layouts(request.node, type, layout);
  kernel.floating_point_operations = 3.0 * static_cast<double>(type.shape.elements());
  kernel.instantiate = [run = run_for<Again>(type.dtype, image_of(type, layout), epsilon, activation)] {
    return run;
  };
  return kernel;
}

Kernel backward_kernel(const KernelRequest& request, const BackwardOptions& options) {
  const Node& node = request.node;
  const TensorType& type = node.inputs[0].type();
  const Layout layout = blocked_layout(type, request.input_layouts[0]);
  const Image image = image_of(type, layout);
  Kernel kernel = with_layouts(node, type, layout);
  kernel.scratch_bytes = image.partial_bytes();
  if (options.has_dz) kernel.in_place = {{3, options.dy}};
  if (options.has_dz && options.dy_more >= 0) kernel.in_place.emplace_back(3, options.dy_more);
  kernel.in_place.emplace_back(0, 0);
  if (!options.has_dz) kernel.in_place.emplace_back(0, options.dy);
  kernel.floating_point_operations =
      (options.sums >= 0 ? 5.0 : 10.0) * static_cast<double>(type.shape.elements());
  const int64_t groups = options.sums >= 0 ? node.inputs[static_cast<size_t>(options.sums)].shape()[0] : 0;
  kernel.instantiate = [run = run_for<Backward>(type.dtype, image, options, groups)] { return run; };
  return kernel;
}

}  // namespace mox::normalisation
