// Batch normalisation of images with channels last: the values of images in blocks of channels, which
// batch_norm_test.cc compares with the formula, in the layout that was offered.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "ops/activation/activation.h"
#include "ops/arithmetic/arithmetic.h"
#include "ops/fusion/batch_norm_node.h"
#include "ops/gradients.h"
#include "ops/normalisation/batch_norm_kernel.h"
#include "ops/normalisation/normalisation.h"
#include "ops/pooling/pooling.h"
#include "ops/reduction/reduction.h"
#include "ops/support/fusable_ops.h"
#include "runtime/exec/plan_instance.h"
#include "tests/ops/kernel_testing.h"
#include "tests/support/evaluate.h"

namespace mox::test::batch_norm_channels_last {
namespace {

using normalisation::Activation;

constexpr double kEpsilon = 1e-3;
constexpr Activation kRelu{.clips = true, .low = 0, .high = kInfinity, .open = true},
    kClip{.clips = true, .low = -0.5f, .high = 0.75f, .open = false};

Layout channels_last(const TensorType& type) {
  const Shape& s = type.shape;
  return Layout::blocked(type, {s[0], s[1], s[2], s[3]}, {s[1] * s[2] * s[3], 1, s[3] * s[1], s[1]}, {});
}

Layout blocks_of_16(const TensorType& type) {
  const Shape& s = type.shape;
  const int64_t padded = (s[1] + 15) / 16 * 16, pixels = s[2] * s[3];
  return Layout::blocked(type, {s[0], padded, s[2], s[3]}, {padded * pixels, pixels * 16, s[3] * 16, 16},
                         {{1, 16}});
}

Array in_type(const Array& values, DType dtype) {
  if (dtype == DType::kFloat32) return values;
  Array result(TensorType{dtype, values.shape()});
  for (size_t i = 0; i < values.values<float>().size(); ++i)
    result.values<BFloat16>()[i] = BFloat16(values.values<float>()[i]);
  return result;
}

double value_of(const Array& array, size_t i) {
  return array.dtype() == DType::kFloat32
             ? static_cast<double>(array.values<float>()[i])
             : static_cast<double>(static_cast<float>(array.values<BFloat16>()[i]));
}

// float32 within what sums in another order differ by, bfloat16 within a rounding of that.
void expect_same_values(const Array& actual, const Array& expected) {
  ASSERT_EQ(actual.type(), expected.type());
  const double rounding = expected.dtype() == DType::kBFloat16 ? 1.0 / 128 : 2e-6;
  double largest = 0;
  const auto elements = static_cast<size_t>(expected.shape().elements());
  for (size_t i = 0; i < elements; ++i) largest = std::max(largest, std::abs(value_of(expected, i)));
  for (size_t i = 0; i < elements; ++i)
    ASSERT_NEAR(value_of(actual, i), value_of(expected, i),
                rounding * std::abs(value_of(expected, i)) + 1e-5 * largest)
        << "element " << i;
}

using BuildNode = std::function<Tensor(std::span<const Tensor> inputs)>;
BuildNode node_of(const Op& op, const Attributes& attributes) {
  return [&op, attributes](std::span<const Tensor> inputs) {
    Node& node = make_node(op, std::vector<Tensor>(inputs.begin(), inputs.end()), attributes,
                           SourceLocation::current());
    return node.output(0);
  };
}

// With inputs of these names, in the order of ops/normalisation/batch_norm_inputs.h.
Attributes with_inputs(Attributes attributes, const std::vector<std::string_view>& names) {
  named_inputs::set_names(attributes, names);
  return attributes;
}

using LayoutOf = std::function<Layout(const TensorType&)>;

struct Outcome {
  std::vector<Array> outputs;  // plain
  Kernel kernel;
};

// All outputs of the node that `build` makes, whose images exist as `layout_of` says.
Outcome run_with_images(const BuildNode& build, const std::vector<Array>& values, const LayoutOf& layout_of,
                        int threads = 2) {
  Graph graph;
  GraphScope scope(graph);
  std::vector<Tensor> inputs;
  inputs.reserve(values.size());
  for (const Array& value : values)
    inputs.push_back(graph.input(static_cast<int>(inputs.size()), value.type(), SourceLocation::current()));
  const Tensor result = build(inputs);
  const Node& node = *result.node();
  const Team team(threads);
  team.enter();
  KernelRequest request{node, {}, std::vector<bool>(node.inputs.size(), false), team};
  for (const Tensor& input : node.inputs)
    request.input_layouts.push_back(input.shape().rank() == 4 ? layout_of(input.type())
                                                              : Layout::plain(input.type()));
  Outcome outcome{.outputs = {}, .kernel = node.op->compile(request)};
  const Kernel& kernel = outcome.kernel;
  std::vector<std::shared_ptr<std::byte>> memory;
  std::vector<const std::byte*> in;
  for (size_t i = 0; i < values.size(); ++i) {
    const TensorType& type = values[i].type();
    auto data = poisoned(type.bytes());
    std::memcpy(data.get(), values[i].data(), type.bytes());
    memory.push_back(converted(type, Layout::plain(type), kernel.input_layouts[i], data, team));
    in.push_back(memory.back().get());
  }
  std::vector<std::shared_ptr<std::byte>> results;
  std::vector<std::byte*> out;
  for (const Layout& layout : kernel.output_layouts) {
    results.push_back(poisoned(layout.bytes()));
    out.push_back(results.back().get());
  }
  run_kernel(kernel, kernel.instantiate(), in, out, team);
  for (size_t i = 0; i < results.size(); ++i) {
    const TensorType& type = node.outputs[i];
    outcome.outputs.push_back(
        Array(type, converted(type, kernel.output_layouts[i], Layout::plain(type), results[i], team))
            .clone());
  }
  return outcome;
}

// In both layouts; with channels last on any number of threads, with the same bits.
std::vector<Array> expect_the_values_of_blocks(const BuildNode& build, const std::vector<Array>& values) {
  const Outcome blocks = run_with_images(build, values, blocks_of_16),
                last = run_with_images(build, values, channels_last),
                alone = run_with_images(build, values, channels_last, 1),
                three = run_with_images(build, values, channels_last, 3);
  for (size_t i = 0; i < blocks.outputs.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "output " << i);
    expect_same_values(last.outputs[i], blocks.outputs[i]);
    for (const Outcome* other : {&alone, &three})
      EXPECT_EQ(std::memcmp(other->outputs[i].data(), last.outputs[i].data(), last.outputs[i].type().bytes()),
                0);
    if (last.outputs[i].shape().rank() == 4) {
      EXPECT_EQ(last.kernel.output_layouts[i], channels_last(last.outputs[i].type()));
    }
  }
  return last.outputs;
}

class BatchNormChannelsLast : public testing::TestWithParam<std::tuple<DType, Shape>> {
 protected:
  DType dtype = std::get<0>(GetParam());
  Shape shape = std::get<1>(GetParam()), channels{shape[1]};
  Array x = image(1, 0.5f), more = image(2), dy = image(3), dy_more = image(4),
        scale = random_array(channels, 5, 0.5f, 1.5f), offset = random_array(channels, 6),
        mean = random_array(channels, 7), variance = random_array(channels, 8, 0.5f, 2.0f);

  Array image(uint64_t seed, float shift = 0) const {
    return in_type(random_array(shape, seed, -1 + shift, 1 + shift), dtype);
  }
};

// Without an activation the op is of float32 alone; passes make the others.
class BatchNormOpChannelsLast : public BatchNormChannelsLast {};

TEST_P(BatchNormOpChannelsLast, NormalisesByTheBatch) {
  expect_the_values_of_blocks(node_of(batch_norm_op(), {{"epsilon", kEpsilon}}), {x, scale, offset});
  expect_the_values_of_blocks(node_of(batch_norm_gradient_op(), {{"epsilon", kEpsilon}}),
                              {x, scale, mean, variance, dy});
}

TEST_P(BatchNormChannelsLast, AddsAndClips) {
  for (const Activation& activation : {kRelu, kClip}) {
    const BuildNode build = node_of(batch_norm_activation_op(), batch_norm_attributes(kEpsilon, activation));
    const std::vector<Array> results = expect_the_values_of_blocks(build, {x, scale, offset});
    const BuildNode adding = node_of(
        batch_norm_activation_op(),
        with_inputs(batch_norm_attributes(kEpsilon, activation), {"x", "scale", "offset", "residual"}));
    expect_the_values_of_blocks(adding, {x, scale, offset, more});

    const BuildNode again =
        node_of(batch_norm_activation_again_op(), batch_norm_attributes(kEpsilon, activation));
    const Array y = expect_the_values_of_blocks(again, {x, scale, offset, results[1], results[2]})[0];
    EXPECT_EQ(std::memcmp(y.data(), results[0].data(), y.type().bytes()), 0);
  }
}

TEST_P(BatchNormChannelsLast, TakesMomentsAndSumsOfConvolutions) {
  constexpr int64_t kGroups = 3;
  Array moments(TensorType{DType::kFloat32, {kGroups, 3, shape[1]}});
  const Array numbers = random_array(moments.shape(), 9, 0.5f, 1.5f);
  const auto pixels = static_cast<float>(shape[0] * shape[2] * shape[3]);
  for (size_t i = 0; i < numbers.values<float>().size(); ++i) {
    const bool is_count = i / static_cast<size_t>(shape[1]) % 3 == 0;
    moments.values<float>()[i] = is_count ? pixels / kGroups : numbers.values<float>()[i];
  }
  expect_the_values_of_blocks(
      node_of(batch_norm_activation_of_moments_op(), batch_norm_attributes(kEpsilon, kRelu)),
      {x, scale, offset, moments, more});
  const Array sums = random_array({kGroups, 2, shape[1]}, 10);
  expect_the_values_of_blocks(
      node_of(batch_norm_gradient_of_sums_op(),
              with_inputs({{"epsilon", kEpsilon}}, {"x", "scale", "mean", "variance", "dy", "sums"})),
      {x, scale, mean, variance, dy, sums});
}

TEST_P(BatchNormChannelsLast, Differentiates) {
  const Array y = expect_the_values_of_blocks(
      node_of(batch_norm_activation_op(), batch_norm_attributes(kEpsilon, kRelu)), {x, scale, offset})[0];
  for (const bool is_open : {true, false})
    for (const bool has_more : {false, true})
      for (const bool has_y : {false, true})
        for (const bool has_dz : {false, true}) {
          if (has_y && !is_open) continue;  // a result that was clipped is only looked at after relu
          SCOPED_TRACE(testing::Message() << "open " << is_open << " dy_more " << has_more << " y " << has_y
                                          << " dz " << has_dz);
          Attributes attributes = batch_norm_attributes(kEpsilon, is_open ? kRelu : kClip);
          attributes.set("has_dz", has_dz);
          std::vector<Array> values = {x, scale, offset, mean, variance, dy};
          std::vector<std::string_view> names = {"x", "scale", "offset", "mean", "variance", "dy"};
          if (has_more) {
            values.push_back(dy_more);
            names.push_back("dy_more");
          }
          if (has_y) {
            values.push_back(y);
            names.push_back("y");
          }
          expect_the_values_of_blocks(
              node_of(batch_norm_activation_gradient_op(), with_inputs(attributes, names)), values);
        }
}

// Groups of fours of pixels and of others, of one pixel, and of images whose extents are prime; channels that
// are no whole vectors of the widest instructions.
const auto kImages =
    testing::Values(Shape{4, 64, 24, 24}, Shape{2, 48, 11, 3}, Shape{3, 16, 25, 35}, Shape{1, 32, 1, 7},
                    Shape{16, 1024, 2, 2}, Shape{5, 160, 13, 1}, Shape{3, 24, 7, 5}, Shape{2, 8, 31, 29});
INSTANTIATE_TEST_SUITE_P(Images, BatchNormOpChannelsLast,
                         testing::Combine(testing::Values(DType::kFloat32), kImages));
INSTANTIATE_TEST_SUITE_P(Images, BatchNormChannelsLast,
                         testing::Combine(testing::Values(DType::kFloat32, DType::kBFloat16), kImages));

TEST(BatchNormLayout, OtherImagesComeInBlocksOf16) {
  // Channels that fill no vector, and an image of one pixel, of which plain and channels last are one layout.
  for (const Shape& shape : {Shape{3, 20, 5, 7}, Shape{2, 12, 3, 3}, Shape{4, 32, 1, 1}}) {
    const std::vector<Array> values = {random_array(shape, 1), random_array({shape[1]}, 2, 0.5f, 1.5f),
                                       random_array({shape[1]}, 3)};
    const BuildNode build = node_of(batch_norm_activation_op(), batch_norm_attributes(kEpsilon, kRelu));
    const Outcome blocks = run_with_images(build, values, blocks_of_16),
                  last = run_with_images(build, values, channels_last);
    EXPECT_EQ(last.kernel.input_layouts[0], blocks_of_16(values[0].type()));
    EXPECT_EQ(last.kernel.output_layouts[0], blocks_of_16(values[0].type()));
    for (size_t i = 0; i < blocks.outputs.size(); ++i) expect_same_values(last.outputs[i], blocks.outputs[i]);
  }
}

// On processors with larger sets too: with 16 channels the two kinds of loops read the same memory.
template <typename T>
void expect_loops_of_avx2(const normalisation::Loops<T>& last, const normalisation::Loops<T>& blocks,
                          DType dtype) {
  constexpr int64_t kWidth = 16, kPixels = 23;
  const auto image = [&](uint64_t seed) { return in_type(random_array({kPixels, kWidth}, seed), dtype); };
  const Array x = image(1), dy = image(2), more = image(3);
  const Array mean = random_array({kWidth}, 4), factor = random_array({kWidth}, 5, 0.5f, 1.5f),
              offset = random_array({kWidth}, 6), slope = random_array({kWidth}, 7);
  const auto run = [&](const normalisation::Loops<T>& loops) {
    Array y = image(8), dz = image(8), dx = image(8), sums = random_array({5, kWidth}, 9);
    float* const sum = sums.values<float>().data();
    loops.statistics(x.values<T>().data(), kPixels, kWidth, sum, sum + kWidth, sum + 2 * kWidth);
    loops.normalise({.pixels = kPixels,
                     .width = kWidth,
                     .x = x.values<T>().data(),
                     .residual = more.values<T>().data(),
                     .y = y.values<T>().data(),
                     .mean = mean.values<float>().data(),
                     .factor = factor.values<float>().data(),
                     .offset = offset.values<float>().data(),
                     .activation = kClip});
    const normalisation::GradientPlane<T> plane{.pixels = kPixels,
                                                .width = kWidth,
                                                .x = x.values<T>().data(),
                                                .dy = dy.values<T>().data(),
                                                .dy_more = more.values<T>().data(),
                                                .y = y.values<T>().data(),
                                                .dz = dz.values<T>().data(),
                                                .dx = dx.values<T>().data(),
                                                .mean = mean.values<float>().data(),
                                                .factor = factor.values<float>().data(),
                                                .offset = offset.values<float>().data(),
                                                .mean_dz = offset.values<float>().data(),
                                                .slope = slope.values<float>().data(),
                                                .activation = kClip,
                                                .mask = normalisation::MaskSource::kNormalised};
    loops.reduce(plane, sum + 3 * kWidth, sum + 4 * kWidth);
    loops.differentiate(plane);
    return std::vector<Array>{y, dz, dx, sums};
  };
  const std::vector<Array> actual = run(last), expected = run(blocks);
  for (size_t i = 0; i < actual.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "result " << i);
    expect_same_values(actual[i], expected[i]);
  }
}

TEST(BatchNormLoops, OfAvx2GoThroughPixelsAsThroughBlocks) {
  using namespace normalisation;
  expect_loops_of_avx2(kFloatAvx2[2], kFloatAvx2[1], DType::kFloat32);
  expect_loops_of_avx2(kBFloat16Avx2[2], kBFloat16Avx2[1], DType::kBFloat16);
}

// An image that must have channels last here, forward and backward, as some convolutions want it.
extern const Op kChannelsLast;
Tensor with_channels_last(const Tensor& x) {
  return make_tensor(kChannelsLast, {x}, {}, SourceLocation::current());
}
const Op kChannelsLast{
    .name = "with_channels_last",
    .infer = [](const OpCall& call) -> std::vector<TensorType> { return {call.type(0)}; },
    .gradient = [](const GradientCall& call) -> std::vector<Tensor> {
      return {with_channels_last(call.gradient())};
    },
    .compile =
        [](const KernelRequest& request) {
          const TensorType& type = request.node.outputs[0];
          Kernel kernel = plain_kernel(request.node, [bytes = type.bytes()](const KernelArguments& a) {
            std::memcpy(a.outputs[0], a.inputs[0], bytes);
          });
          kernel.input_layouts = kernel.output_layouts = {channels_last(type)};
          return kernel;
        },
};

TEST(BatchNormLayout, NothingIsConvertedBetweenOpsThatWantChannelsLast) {
  const std::vector<Array> values = {random_array({2, 32, 8, 8}, 1), random_array({32}, 2, 0.5f, 1.5f),
                                     random_array({32}, 3)};
  Graph graph;
  GraphScope scope(graph);
  std::vector<Tensor> in;
  in.reserve(values.size());
  for (const Array& value : values)
    in.push_back(graph.input(static_cast<int>(in.size()), value.type(), SourceLocation::current()));
  const auto normalised = [&](const Tensor& x) { return batch_norm(x, in[1], in[2]).y; };
  Tensor x = with_channels_last(in[0]);
  x = with_channels_last(relu(normalised(x)));
  x = with_channels_last(relu(add(normalised(x), x)));
  x = with_channels_last(relu(max_pool(normalised(x))));
  const Tensor loss = reduce_sum(mul(x, x));
  const std::vector<Tensor> found = gradients(loss, in);
  const Team team(1);
  team.enter();
  const auto plan = Plan::compile(graph, {.fetches = found, .gradients = {}, .after_step_values = {}},
                                  compile_options(), team);
  // The input, and its gradient.
  EXPECT_EQ(plan->statistics().conversions, 2u) << plan->describe();
}

}  // namespace
}  // namespace mox::test::batch_norm_channels_last
