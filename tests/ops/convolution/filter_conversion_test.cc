// Conversions of filters between the plain layout and blocks, against the place that the layout
// gives every element.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "ops/convolution/conv2d.h"
#include "ops/fusion/default_rules.h"
#include "ops/processor/processor.h"
#include "runtime/exec/plan_instance.h"
#include "tests/support/evaluate.h"

namespace mox {
namespace {

constexpr int kOutDimension = 0, kInDimension = 1;

struct FilterBlocks {
  DType dtype;
  bool is_out_outermost;
  std::vector<Layout::Block> inner;
  bool both_directions;

  int64_t block() const {  // channels
    return dtype == DType::kBFloat16 ? 16 : inner[0].size;
  }
};

const std::vector<FilterBlocks>& all_filter_blocks() {
  const int o = kOutDimension, i = kInDimension;
  static const std::vector<FilterBlocks> all = {
      {DType::kFloat32, true, {{i, 16}, {o, 16}}, true},
      {DType::kFloat32, true, {{o, 16}, {i, 16}}, false},
      {DType::kFloat32, false, {{o, 16}, {i, 16}}, false},
      {DType::kFloat32, true, {{i, 8}, {o, 8}}, true},
      {DType::kFloat32, true, {{o, 8}, {i, 8}}, false},
      {DType::kFloat32, false, {{o, 8}, {i, 8}}, false},
      {DType::kBFloat16, true, {{i, 8}, {o, 16}, {i, 2}}, false},
      {DType::kBFloat16, true, {{o, 8}, {i, 16}, {o, 2}}, false},
      {DType::kBFloat16, false, {{o, 8}, {i, 16}, {o, 2}}, false},
  };
  return all;
}

// Channels are padded to whole blocks.
Layout blocked_filter(const FilterBlocks& blocks, const Shape& shape) {
  const int64_t side = blocks.block(), out = (shape[0] + side - 1) / side, in = (shape[1] + side - 1) / side;
  const int64_t tap = side * side, block = tap * shape[2] * shape[3];
  const int64_t out_stride = blocks.is_out_outermost ? in * block : block;
  const int64_t in_stride = blocks.is_out_outermost ? block : out * block;
  return Layout::blocked({blocks.dtype, shape}, {out * side, in * side, shape[2], shape[3]},
                         {out_stride, in_stride, tap * shape[3], tap}, blocks.inner);
}

// In elements, of the element [out, in, y, x].
int64_t place_of(const Layout& layout, std::vector<int64_t> index) {
  int64_t place = 0, step = 1;
  for (size_t b = layout.blocks().size(); b-- > 0;) {
    const Layout::Block& block = layout.blocks()[b];
    int64_t& i = index[block.dimension];
    place += i % block.size * step;
    i /= block.size;
    step *= block.size;
  }
  for (size_t d = 0; d < index.size(); ++d) place += index[d] * layout.strides()[d];
  return place;
}

// Bytes of every kind: NaNs of either sign and the smallest numbers must come through as they are.
std::vector<std::byte> any_bytes(size_t count) {
  std::vector<std::byte> bytes(count);
  uint64_t state = 1;
  for (std::byte& byte : bytes) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<std::byte>(state >> 56);
  }
  return bytes;
}

// `blocked` by definition, from plain bytes; padding is zero.
std::vector<std::byte> in_blocks(const TensorType& type, const Layout& layout,
                                 const std::vector<std::byte>& plain) {
  std::vector<std::byte> blocked(layout.bytes(), std::byte{0});
  const size_t size = size_of(type.dtype);
  const std::byte* from = plain.data();
  const Shape& s = type.shape;
  for (int64_t out = 0; out < s[0]; ++out)
    for (int64_t in = 0; in < s[1]; ++in)
      for (int64_t y = 0; y < s[2]; ++y)
        for (int64_t x = 0; x < s[3]; ++x, from += size)
          std::memcpy(blocked.data() + static_cast<size_t>(place_of(layout, {out, in, y, x})) * size, from,
                      size);
  return blocked;
}

// What the conversion makes of `from`, in memory `offset` bytes off a cache line; checks that nothing around
// it is written.
std::vector<std::byte> convert_bytes(const Kernel& kernel, const std::vector<std::byte>& from, int threads,
                                     size_t offset) {
  constexpr size_t kGuard = 256;
  const Team team(threads);
  team.enter();
  const size_t bytes = kernel.output_layouts[0].bytes();
  const auto input = allocate_aligned(from.size() + offset), output = allocate_aligned(bytes + 2 * kGuard),
             scratch = allocate_aligned(kernel.scratch_bytes);
  std::memcpy(input.get() + offset, from.data(), from.size());
  std::memset(output.get(), 0x5a, bytes + 2 * kGuard);
  std::byte* const begin = output.get() + kGuard + offset;
  const std::byte* const source = input.get() + offset;
  kernel.instantiate()({std::span(&source, 1), std::span(&begin, 1), scratch.get(), team, 0, 0});
  for (std::byte* p = output.get(); p < output.get() + bytes + 2 * kGuard; ++p)
    if ((p < begin || p >= begin + bytes) && *p != std::byte{0x5a}) {
      ADD_FAILURE() << "writes outside of its result, at " << p - begin;
      break;
    }
  return {begin, begin + bytes};
}

void expect_conversions_of(const FilterBlocks& blocks, const Shape& shape) {
  const TensorType type{blocks.dtype, shape};
  const Layout plain = Layout::plain(type), layout = blocked_filter(blocks, shape);
  SCOPED_TRACE(to_string(type) + " " + layout.to_string());
  const int64_t block = blocks.block();
  const bool fits = shape[0] % block == 0 && shape[1] % block == 0 && shape[2] * shape[3] <= 49;
  const bool is_ours = fits && processor().lanes == block;
  const char* ours = block == 16 ? "filter_blocks:avx512_core" : "filter_blocks:avx2";
  const std::vector<std::byte> in_plain = any_bytes(type.bytes()),
                               expected = in_blocks(type, layout, in_plain);
  const Team team(3);
  const Kernel to_blocks = convert_layout(type, plain, layout, team);
  const Kernel to_plain = convert_layout(type, layout, plain, team);
  EXPECT_EQ(to_blocks.implementation == ours, is_ours) << to_blocks.implementation;
  EXPECT_EQ(to_plain.implementation == ours, is_ours && blocks.both_directions) << to_plain.implementation;
  for (const auto& [threads, offset] : {std::pair<int, size_t>{1, 0}, {3, 0}, {2, size_of(type.dtype)}}) {
    EXPECT_TRUE(convert_bytes(to_blocks, in_plain, threads, offset) == expected) << threads << " threads";
    EXPECT_TRUE(convert_bytes(to_plain, expected, threads, offset) == in_plain)
        << threads << " threads, back";
  }
}

TEST(FilterConversion, PutsEveryElementInItsPlace) {
  const std::vector<std::pair<int64_t, int64_t>> channels = {{16, 16}, {32, 16},  {16, 32},  {48, 80},
                                                             {80, 48}, {64, 144}, {128, 128}};
  const std::vector<std::pair<int64_t, int64_t>> windows = {{1, 1}, {1, 2}, {2, 2}, {1, 3}, {3, 1},
                                                            {3, 3}, {5, 5}, {3, 4}, {7, 7}};
  for (const FilterBlocks& blocks : all_filter_blocks())
    for (const auto& [out, in] : channels)
      for (const auto& [height, width] : windows) expect_conversions_of(blocks, {out, in, height, width});
}

// Results that are written around the caches, and in pieces when they do not begin at a cache line.
TEST(FilterConversion, PutsEveryElementOfLargeFiltersInItsPlace) {
  for (const FilterBlocks& blocks : all_filter_blocks()) {
    expect_conversions_of(blocks, {1024, 2064, 1, 1});
    expect_conversions_of(blocks, {496, 528, 3, 3});
  }
}

TEST(FilterConversion, LeavesOtherFiltersToOneDnn) {
  for (const FilterBlocks& blocks : all_filter_blocks())
    for (const Shape& shape : {Shape{24, 16, 3, 3}, Shape{16, 20, 1, 1}, Shape{32, 16, 8, 8}})
      expect_conversions_of(blocks, shape);
}

// The layouts are those that oneDNN's convolutions ask for.
TEST(FilterConversion, StandsInTheirPlans) {
  const auto plan_of = [](int64_t window, Precision precision) {
    Graph graph;
    const GraphScope scope(graph);
    const SourceLocation here = SourceLocation::current();
    const Tensor x = graph.input(0, {DType::kFloat32, {8, 64, 14, 14}}, here),
                 w = graph.input(1, {DType::kFloat32, {128, 64, window, window}}, here);
    const Tensor y = conv2d(x, w, {.padding = Padding::kSame});
    const Tensor dy = graph.input(2, y.type(), here);
    const ConvolutionOptions options{.padding = Padding::kSame};
    const Team team(1);
    team.enter();
    CompileOptions compile = test::compile_options();
    const RuleOptions rules{.precision = precision, .direct_convolutions = true};
    compile.hints = kernel_hints(rules);
    compile.rules = default_rules(rules);
    compile.convert = convert_layout;
    return Plan::compile(graph,
                         {.fetches = {y, conv2d_input_gradient(x.shape(), w, dy, options),
                                      conv2d_filter_gradient(x, w.shape(), dy, options)},
                          .gradients = {},
                          .after_step_values = {}},
                         compile, team)
        ->describe();
  };
  using ::testing::HasSubstr;
  const std::string one = plan_of(1, Precision::kFloat32), nine = plan_of(3, Precision::kFloat32);
  if (processor().lanes < 16) {
    for (const std::string& plan : {one, nine}) {
      EXPECT_THAT(plan, HasSubstr("filter_blocks:avx2 (plain -> ABcd8b8a)"));
      EXPECT_THAT(plan, HasSubstr("filter_blocks:avx2 (ABcd8b8a -> plain)"));
      EXPECT_THAT(plan, HasSubstr("filter_blocks:avx2 (plain -> ABcd8a8b)"));
    }
    return;
  }
  for (const std::string& plan : {one, nine}) {
    EXPECT_THAT(plan, HasSubstr("filter_blocks:avx512_core (plain -> ABcd16b16a)"));
    EXPECT_THAT(plan, HasSubstr("filter_blocks:avx512_core (ABcd16b16a -> plain)"));
  }
  EXPECT_THAT(one, HasSubstr("filter_blocks:avx512_core (plain -> BAcd16a16b)"));
  EXPECT_THAT(nine, HasSubstr("filter_blocks:avx512_core (plain -> ABcd16a16b)"));
  if (!processor().bfloat16_products || processor().tiles) return;
  const std::string one_in_bfloat16 = plan_of(1, Precision::kBFloat16),
                    nine_in_bfloat16 = plan_of(3, Precision::kBFloat16);
  for (const std::string& plan : {one_in_bfloat16, nine_in_bfloat16})
    EXPECT_THAT(plan, HasSubstr("filter_blocks:avx512_core (plain -> ABcd8b16a2b)"));
  EXPECT_THAT(one_in_bfloat16, HasSubstr("filter_blocks:avx512_core (plain -> BAcd8a16b2a)"));
  EXPECT_THAT(nine_in_bfloat16, HasSubstr("filter_blocks:avx512_core (plain -> ABcd8a16b2a)"));
}

}  // namespace
}  // namespace mox
