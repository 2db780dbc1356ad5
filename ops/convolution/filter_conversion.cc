#include "ops/convolution/filter_conversion.h"

#include <vector>

#include "ops/processor/processor.h"

namespace mox {
namespace filter_conversion {
namespace {

// Less than this is not worth a second thread.
constexpr int64_t kBytesPerThread = 1 << 16;
// Results from this size on are streamed: more than the cores' own caches keep of them until they are read.
// (resnet_v1_50 in float32, two cores: these conversions gain a quarter, and the convolutions behind them
// lose nothing that could be measured; from 1 to 4 MiB the two together gain nothing.)
constexpr size_t kStreamedBytes = size_t{4} << 20;

// A blocked layout, and what converts it where something does.
struct Blocks {
  bool is_out_outermost;
  std::vector<Layout::Block> inner;
  std::optional<Conversion> from_plain, to_plain;
};

std::vector<Blocks> blocks_of(DType dtype, int64_t block) {
  constexpr int kOut = 0, kIn = 1;  // dimensions
  if (dtype == DType::kFloat32)
    return {{true, {{kIn, block}, {kOut, block}}, Conversion::kFloatToInOut, Conversion::kFloatFromInOut},
            {true, {{kOut, block}, {kIn, block}}, Conversion::kFloatToOutIn, std::nullopt},
            {false, {{kOut, block}, {kIn, block}}, Conversion::kFloatToOutIn, std::nullopt}};
  if (dtype == DType::kBFloat16 && block == 16)
    return {{true, {{kIn, 8}, {kOut, 16}, {kIn, 2}}, Conversion::kBFloat16ToInOut, std::nullopt},
            {true, {{kOut, 8}, {kIn, 16}, {kOut, 2}}, Conversion::kBFloat16ToOutIn, std::nullopt},
            {false, {{kOut, 8}, {kIn, 16}, {kOut, 2}}, Conversion::kBFloat16ToOutIn, std::nullopt}};
  return {};
}

Layout layout_of(const TensorType& type, const Filter& filter, const std::vector<Layout::Block>& inner) {
  const Shape& shape = type.shape;
  const int64_t tap = filter.block * filter.block;
  return Layout::blocked(type, {shape[0], shape[1], shape[2], shape[3]},
                         {filter.out_stride(), filter.in_stride(), shape[3] * tap, tap}, inner);
}

bool takes(const Shape& shape, int64_t block) {
  return shape.rank() == 4 && shape.elements() > 0 && shape[0] % block == 0 && shape[1] % block == 0 &&
         shape[2] * shape[3] <= kMaxTaps;
}

Kernel kernel_of(const TensorType& type, const Layout& from, const Layout& to, const Filter& filter,
                 Conversion conversion) {
  Kernel kernel;
  kernel.input_layouts = {from};
  kernel.output_layouts = {to};
  const bool is_wide = filter.block >= 16;
  kernel.implementation = is_wide ? "filter_blocks:avx512_core" : "filter_blocks:avx2";
  const int64_t strips = filter.out_blocks() * filter.strips();
  const int64_t grain = 1 + kBytesPerThread * strips / static_cast<int64_t>(type.bytes());
  const auto converter = type.dtype == DType::kBFloat16 ? pair_converter_avx512
                         : is_wide                      ? float_converter_avx512
                                                        : float_converter_avx2;
  const ConvertStrips cached = converter(conversion, Writing::kCached);
  const ConvertStrips large =
      type.bytes() >= kStreamedBytes ? converter(conversion, Writing::kStreamed) : cached;
  kernel.instantiate = [filter, strips, grain, cached, large]() -> KernelFunction {
    return [=](const KernelArguments& run) {
      const bool is_aligned = reinterpret_cast<uintptr_t>(run.outputs[0]) % 64 == 0;
      const ConvertStrips convert = is_aligned ? large : cached;
      run.team.parallel_for(strips, grain, [&](int64_t first, int64_t last) {
        convert(filter, run.inputs[0], run.outputs[0], first, last);
      });
    };
  };
  return kernel;
}

}  // namespace
}  // namespace filter_conversion

std::optional<Kernel> filter_conversion_kernel(const TensorType& type, const Layout& from, const Layout& to) {
  using namespace filter_conversion;
  const int64_t block = processor().lanes;
  if (!takes(type.shape, block)) return std::nullopt;
  for (const Blocks& blocks : blocks_of(type.dtype, block)) {
    const Filter filter{type.shape[0], type.shape[1], type.shape[2] * type.shape[3], blocks.is_out_outermost,
                        block};
    const Layout layout = layout_of(type, filter, blocks.inner);
    if (from.is_plain() && to == layout && blocks.from_plain)
      return kernel_of(type, from, to, filter, *blocks.from_plain);
    if (to.is_plain() && from == layout && blocks.to_plain)
      return kernel_of(type, from, to, filter, *blocks.to_plain);
  }
  return std::nullopt;
}

}  // namespace mox
