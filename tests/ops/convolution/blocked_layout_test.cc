// Kernels that keep blocked layouts: the same values as on plain ones, and zeros in the padding.
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <cstring>

#include "ops/fusion/elementwise_rule.h"
#include "ops/ops.h"
#include "tests/support/evaluate.h"

namespace mox {
namespace {

using test::random_array;

Layout nhwc(const TensorType& type) {
  const int64_t c = type.shape[1], h = type.shape[2], w = type.shape[3];
  return Layout::blocked(type, {type.shape[0], c, h, w}, {c * h * w, 1, w * c, c}, {});
}

// nChw8c, padded where there are not whole blocks of channels.
Layout nchw8c(const TensorType& type) {
  const int64_t blocks = (type.shape[1] + 7) / 8, h = type.shape[2], w = type.shape[3];
  return Layout::blocked(type, {type.shape[0], blocks * 8, h, w}, {blocks * h * w * 8, h * w * 8, w * 8, 8},
                         {{1, 8}});
}

// Position of logical element (n, c, h, w) in memory.
int64_t position(const Layout& layout, int64_t n, int64_t c, int64_t h, int64_t w) {
  const int64_t block = layout.blocks().empty() ? 1 : 8;
  const auto& s = layout.strides();
  return n * s[0] + c / block * s[1] + h * s[2] + w * s[3] + c % block;
}

// Calls f(plain index, position in `layout`) for every logical element.
void for_each_element(const Shape& shape, const Layout& layout,
                      const std::function<void(size_t, size_t)>& f) {
  size_t i = 0;
  for (int64_t n = 0; n < shape[0]; ++n)
    for (int64_t c = 0; c < shape[1]; ++c)
      for (int64_t h = 0; h < shape[2]; ++h)
        for (int64_t w = 0; w < shape[3]; ++w) f(i++, static_cast<size_t>(position(layout, n, c, h, w)));
}

std::vector<std::byte> in_layout(const Array& array, const Layout& layout) {
  if (layout.is_plain()) return {array.as_bytes().begin(), array.as_bytes().end()};
  std::vector<std::byte> bytes(layout.bytes());
  const size_t size = size_of(array.dtype());
  for_each_element(array.shape(), layout, [&](size_t from, size_t to) {
    std::memcpy(bytes.data() + to * size, array.data() + from * size, size);
  });
  return bytes;
}

struct Outcome {
  std::vector<bool> wants_plain;  // of each input
  Layout layout;                  // of the output
  bool padding_is_zero = true;
};

// Compiles the one node that `build` makes, fused, for inputs in `layouts`, runs it, compares with
// the plain evaluation.
Outcome run_in_layouts(const test::Build& build, const std::vector<Array>& arrays,
                       const std::vector<Layout>& layouts) {
  Graph graph;
  GraphScope scope(graph);
  std::vector<Tensor> inputs;
  for (const Array& array : arrays)
    inputs.push_back(graph.input(static_cast<int>(inputs.size()), array.type(), SourceLocation::current()));
  GraphRewriter rewriter(graph, {build(inputs)});
  rewriter.apply(elementwise_chain_rule().rule);
  const Tensor y = rewriter.outputs()[0];
  const Node& node = *y.node();
  const Team team(2);
  KernelRequest request{.node = node, .input_layouts = {}, .input_is_stored = {}, .team = team};
  std::vector<Array> values;
  for (const Tensor& input : node.inputs) {
    const Attributes& attributes = input.node()->attributes;
    const bool is_constant = attributes.has("value");
    const size_t index = is_constant ? 0 : static_cast<size_t>(attributes.get<int64_t>("component"));
    request.input_layouts.push_back(is_constant ? Layout::plain(input.type()) : layouts[index]);
    request.input_is_stored.push_back(is_constant);
    values.push_back(is_constant ? attributes.get<Array>("value") : arrays[index]);
  }
  const Kernel kernel = node.op->compile(request);
  Outcome outcome{.wants_plain = {}, .layout = kernel.output_layouts[0]};
  std::vector<std::vector<std::byte>> memory;
  for (size_t i = 0; i < values.size(); ++i) {
    outcome.wants_plain.push_back(kernel.input_layouts[i].is_plain());
    memory.push_back(in_layout(values[i], kernel.input_layouts[i]));
  }
  std::vector<const std::byte*> pointers;
  for (const auto& bytes : memory) pointers.push_back(bytes.data());
  const auto output = allocate_aligned(outcome.layout.bytes()),
             scratch = allocate_aligned(kernel.scratch_bytes);
  std::memset(output.get(), 0x7f, outcome.layout.bytes());
  std::byte* const output_pointer = output.get();
  kernel.instantiate()({pointers, std::span(&output_pointer, 1), scratch.get(), team, 0, 0});

  const Array expected = test::evaluate_op(build, arrays);
  std::vector<bool> is_padding(outcome.layout.bytes() / size_of(y.dtype()), true);
  size_t wrong = 0;
  auto compare = [&](size_t plain, size_t physical) {
    const size_t size = size_of(y.dtype());
    is_padding[physical] = false;
    wrong += std::memcmp(expected.data() + plain * size, output_pointer + physical * size, size) != 0;
  };
  if (outcome.layout.is_plain()) {
    for (size_t i = 0; i < is_padding.size(); ++i) compare(i, i);
  } else {
    for_each_element(y.shape(), outcome.layout, compare);
  }
  EXPECT_EQ(wrong, 0u);
  for (size_t i = 0; i < is_padding.size(); ++i)
    if (is_padding[i])
      for (size_t k = 0; k < size_of(y.dtype()); ++k)
        outcome.padding_is_zero &= output_pointer[i * size_of(y.dtype()) + k] == std::byte{0};
  return outcome;
}

const Shape kImage{2, 24, 5, 7}, kOddImage{2, 19, 5, 7};

TEST(ElementwiseLayout, KeepsTheLayoutOfItsInput) {
  const Array x = random_array(kImage, 1);
  for (const Layout& layout : {nhwc(x.type()), nchw8c(x.type())}) {
    const Outcome outcome =
        run_in_layouts([](std::span<const Tensor> in) { return sigmoid(in[0]); }, {x}, {layout});
    EXPECT_EQ(outcome.layout, layout);
  }
}

TEST(ElementwiseLayout, AsksForOneLayoutOfAllOperands) {
  const Array x = random_array(kImage, 2), y = random_array(kImage, 3);
  const Outcome outcome = run_in_layouts([](std::span<const Tensor> in) { return in[0] + in[1]; }, {x, y},
                                         {Layout::plain(x.type()), nchw8c(y.type())});
  EXPECT_EQ(outcome.layout, nchw8c(x.type()));
  EXPECT_THAT(outcome.wants_plain, ::testing::ElementsAre(false, false));
}

TEST(ElementwiseLayout, OtherDtypesFollowInTheSameOrder) {
  const Array x = random_array(kImage, 4);
  const Outcome mask = run_in_layouts([](std::span<const Tensor> in) { return greater(in[0], 0.1f); }, {x},
                                      {nchw8c(x.type())});
  EXPECT_EQ(mask.layout, nchw8c({DType::kBool, kImage}));
}

TEST(ElementwiseLayout, PaddingStaysZero) {
  const Array x = random_array(kOddImage, 5), y = random_array(kOddImage, 6);
  const Layout layout = nchw8c(x.type());
  ASSERT_TRUE(layout.is_padded());
  for (const test::Build& build : std::vector<test::Build>{
           [](std::span<const Tensor> in) { return relu(in[0]); },
           [](std::span<const Tensor> in) { return in[0] * 3.0f; },
           [](std::span<const Tensor> in) { return in[0] * in[1]; },
           [](std::span<const Tensor> in) { return select(greater(in[0], 0), in[1], 0); }}) {
    const Outcome outcome = run_in_layouts(build, {x, y}, {layout, layout});
    EXPECT_TRUE(outcome.padding_is_zero);
  }
  EXPECT_EQ(run_in_layouts([](std::span<const Tensor> in) { return tanh(in[0]); }, {x}, {layout}).layout,
            layout);
}

TEST(ElementwiseLayout, AsksForPlainWherePaddingWouldNotStayZero) {
  const Array x = random_array(kOddImage, 7), bias = random_array({19, 1, 1}, 8);
  const Layout layout = nchw8c(x.type());
  EXPECT_TRUE(
      run_in_layouts([](std::span<const Tensor> in) { return exp(in[0]); }, {x}, {layout}).layout.is_plain());
  EXPECT_TRUE(
      run_in_layouts([](std::span<const Tensor> in) { return in[0] + 1; }, {x}, {layout}).layout.is_plain());
  EXPECT_TRUE(run_in_layouts([](std::span<const Tensor> in) { return in[0] / in[0]; }, {x}, {layout})
                  .layout.is_plain());
  EXPECT_TRUE(run_in_layouts([](std::span<const Tensor> in) { return in[0] * in[1]; }, {x, bias},
                             {layout, Layout::plain(bias.type())})
                  .layout.is_plain());
}

TEST(ElementwiseLayout, ReadsBroadcastOperandsBesideBlockedOnes) {
  const Array x = random_array(kImage, 9);
  for (const Shape& shape : {Shape{24, 1, 1}, Shape{1, 24, 1, 1}, Shape{2, 1, 1, 1}, Shape{7}, Shape{5, 1},
                             Shape{2, 24, 1, 1}, Shape{24, 1, 7}, Shape{1, 24, 5, 7}, Shape{}}) {
    SCOPED_TRACE(to_string(shape));
    const Array other = random_array(shape, 10);
    for (const Layout& layout : {nhwc(x.type()), nchw8c(x.type())}) {
      const Outcome outcome = run_in_layouts([](std::span<const Tensor> in) { return in[0] - in[1]; },
                                             {x, other}, {layout, Layout::plain(other.type())});
      EXPECT_EQ(outcome.layout, layout);
    }
  }
}

TEST(ElementwiseLayout, FollowsAConvolution) {
  const test::Build convolve = [](std::span<const Tensor> in) { return conv2d(in[0], in[1]); };
  const test::Build after = [](std::span<const Tensor> in) { return square(tanh(in[0]) * in[1]) + in[0]; };
  for (const int64_t channels : {32, 19}) {
    const Array x = random_array({2, 16, 9, 9}, 11), w = random_array({channels, 16, 3, 3}, 12, -0.1f, 0.1f);
    const Array scale = random_array({channels, 1, 1}, 13);
    const Array y = test::evaluate_op(convolve, {x, w});
    test::expect_close(test::evaluate_op(
                           [&](std::span<const Tensor> in) {
                             return after(std::vector{convolve(in.first(2)), in[2]});
                           },
                           {x, w, scale}),
                       test::evaluate_op(after, {y, scale}), 1e-4, 1e-5);
  }
}

TEST(ElementwiseLayout, GivesIntegersAndTruthValuesToWhomeverWantsThem) {
  const Array x = random_array({2, 16, 9, 9}, 11), w = random_array({32, 16, 3, 3}, 12, -0.1f, 0.1f);
  test::evaluate_ops(
      [](std::span<const Tensor> in) {
        const Tensor y = conv2d(in[0], in[1]);
        return std::vector<Tensor>{cast(y * 10.0f, DType::kInt64), cast(y * 10.0f, DType::kInt32),
                                   greater(y, 0)};
      },
      {x, w});
}

// Where a box begins and ends, within a block of 8 channels or with one.
struct BoxCase {
  std::vector<int64_t> begin, size;
};

const std::vector<BoxCase> kBoxes = {{{0, 8, 0, 0}, {2, 16, 5, 7}},
                                     {{0, 4, 0, 0}, {2, 16, 5, 7}},
                                     {{1, 3, 2, 1}, {1, 8, 3, 5}},
                                     {{0, 0, 1, 0}, {2, 24, 3, 7}}};

TEST(BlockedLayout, SliceKeepsIt) {
  const Array x = random_array(kImage, 1);
  for (const BoxCase& box : kBoxes) {
    const auto build = [&](std::span<const Tensor> in) { return slice(in[0], box.begin, box.size); };
    const Outcome outcome = run_in_layouts(build, {x}, {nchw8c(x.type())});
    EXPECT_FALSE(outcome.wants_plain[0]);
    EXPECT_EQ(outcome.layout, nchw8c({DType::kFloat32, Shape(box.size)}));
  }
}

TEST(BlockedLayout, PadKeepsIt) {
  for (const BoxCase& box : kBoxes) {
    std::vector<PadAmount> amounts;
    for (int axis = 0; axis < 4; ++axis) {
      const auto i = static_cast<size_t>(axis);
      amounts.push_back({box.begin[i], kImage[axis] - box.begin[i] - box.size[i]});
    }
    const Array x = random_array(Shape(box.size), 1);
    const auto build = [&](std::span<const Tensor> in) { return pad(in[0], amounts, 1.5); };
    const Outcome outcome = run_in_layouts(build, {x}, {nchw8c(x.type())});
    EXPECT_FALSE(outcome.wants_plain[0]);
    EXPECT_EQ(outcome.layout, nchw8c({DType::kFloat32, kImage}));
  }
}

// Blocks that are not full.
TEST(BlockedLayout, SliceAndPadLeaveOthersPlain) {
  const Array x = random_array(kImage, 1), odd = random_array(kOddImage, 2);
  const auto cut = [](std::span<const Tensor> in) { return slice(in[0], {0, 0, 0, 0}, {2, 12, 5, 7}); };
  const auto grow = [](std::span<const Tensor> in) { return pad(in[0], {{}, {0, 5}, {}, {}}); };
  EXPECT_TRUE(run_in_layouts(cut, {x}, {nchw8c(x.type())}).wants_plain[0]);
  EXPECT_TRUE(run_in_layouts(grow, {x}, {nchw8c(x.type())}).wants_plain[0]);
  EXPECT_TRUE(run_in_layouts(grow, {odd}, {nchw8c(odd.type())}).wants_plain[0]);
}

// Any number of channels, from any place.
TEST(ChannelsLast, SliceAndPadKeepIt) {
  std::vector<BoxCase> boxes = kBoxes;
  boxes.push_back({{1, 5, 0, 2}, {1, 11, 5, 4}});
  for (const BoxCase& box : boxes) {
    const Array x = random_array(kImage, 1);
    const auto cut = [&](std::span<const Tensor> in) { return slice(in[0], box.begin, box.size); };
    const Outcome part = run_in_layouts(cut, {x}, {nhwc(x.type())});
    EXPECT_FALSE(part.wants_plain[0]);
    EXPECT_EQ(part.layout, nhwc({DType::kFloat32, Shape(box.size)}));

    std::vector<PadAmount> amounts;
    for (int axis = 0; axis < 4; ++axis) {
      const auto i = static_cast<size_t>(axis);
      amounts.push_back({box.begin[i], kImage[axis] - box.begin[i] - box.size[i]});
    }
    const Array small = random_array(Shape(box.size), 2);
    const auto grow = [&](std::span<const Tensor> in) { return pad(in[0], amounts, 1.5); };
    const Outcome whole = run_in_layouts(grow, {small}, {nhwc(small.type())});
    EXPECT_FALSE(whole.wants_plain[0]);
    EXPECT_EQ(whole.layout, nhwc(x.type()));
  }
}

}  // namespace
}  // namespace mox
