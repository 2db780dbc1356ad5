#include <gmock/gmock-more-matchers.h>

#include <cmath>

#include "ops/random/random.h"
#include "runtime/base/random.h"
#include "tests/ops/run_op.h"
#include "tests/support/gradient_check.h"

namespace mox::test {
namespace {

using ::testing::HasSubstr;
using Tensors = std::span<const Tensor>;

Array ones(int64_t elements) {
  return Array::from<float>({elements}, std::vector<float>(static_cast<size_t>(elements), 1.0f));
}

// The rule of ops/random/internal/dropout_mask.h, with the scalar generator.
std::vector<float> reference(int64_t elements, double rate, uint64_t seed, uint64_t stream) {
  const auto keep_count = static_cast<uint32_t>(std::round((1 - rate) * 65536));
  std::vector<float> y;
  for (int64_t i = 0; i < elements; ++i) {
    const auto tile = static_cast<uint64_t>(i / 64), row = static_cast<uint64_t>(i / 8 % 8),
               column = static_cast<uint64_t>(i % 8);
    const uint32_t word = philox(seed, 8 * tile + column, stream)[row / 2];
    const uint32_t bits = row % 2 == 0 ? word & 0xffff : word >> 16;
    y.push_back(bits < keep_count ? 65536.0f / static_cast<float>(keep_count) : 0.0f);
  }
  return y;
}

TEST(Dropout, DrawsTheStatedBits) {
  for (int64_t elements : {0, 1, 63, 64, 65, 1000, 100000})
    for (double rate : {0.1, 0.5, 0.9}) {
      const Array y = run_op([&](Tensors in) { return dropout(in[0], rate, true); }, {ones(elements)},
                             {.seed = 42, .step = 7});
      EXPECT_EQ(values_of<float>(y), reference(elements, rate, 42, mix_hash(stable_hash("dropout"), 7)));
    }
}

TEST(Dropout, DropsTheStatedShareAndKeepsTheMean) {
  constexpr int64_t kElements = 1 << 20;
  for (double rate : {0.001, 0.3, 0.5, 0.99}) {
    const Array y = run_op([&](Tensors in) { return dropout(in[0], rate, true); }, {ones(kElements)});
    int64_t dropped = 0;
    double sum = 0;
    for (float value : y.values<float>()) {
      dropped += value == 0;
      sum += value;
    }
    const double deviation = std::sqrt(rate * (1 - rate) / kElements);
    EXPECT_NEAR(static_cast<double>(dropped) / kElements, rate, 5 * deviation + 0x1p-17);
    EXPECT_NEAR(sum / kElements, 1, 5 * deviation / (1 - rate));
  }
}

TEST(Dropout, NeverRoundsARateToNothingOrToAll) {
  const auto kept = [](double rate) {
    const Array y = run_op([&](Tensors in) { return dropout(in[0], rate, true); }, {ones(1 << 20)});
    int64_t count = 0;
    for (float value : y.values<float>()) count += value != 0;
    return count;
  };
  EXPECT_LT(kept(1e-9), 1 << 20);
  EXPECT_GT(kept(1 - 1e-9), 0);
}

TEST(Dropout, ChangesWithSeedStepAndNode) {
  const auto draw = [](uint64_t seed, int64_t step) {
    return run_ops(
        [](Tensors in) {
          return std::vector{dropout(in[0], 0.5, true), dropout(in[0], 0.5, true)};
        },
        {ones(200)}, {.seed = seed, .step = step});
  };
  const auto first = draw(1, 1);
  EXPECT_EQ(values_of<float>(first[0]), values_of<float>(draw(1, 1)[0]));
  EXPECT_NE(values_of<float>(first[0]), values_of<float>(first[1]));
  EXPECT_NE(values_of<float>(first[0]), values_of<float>(draw(2, 1)[0]));
  EXPECT_NE(values_of<float>(first[0]), values_of<float>(draw(1, 2)[0]));
}

TEST(Dropout, IsTheInputItselfOutsideOfTraining) {
  Graph graph;
  GraphScope scope(graph);
  const Tensor x = graph.input(0, {DType::kFloat32, {3}}, SourceLocation::current());
  EXPECT_EQ(dropout(x, 0.5, false), x);
  EXPECT_EQ(dropout(x, 0.0, true), x);
  EXPECT_NE(dropout(x, 0.5, true), x);
}

TEST(Dropout, HasTheGradientOfItsMask) {
  for (const Shape& shape : {Shape{3, 50}, Shape{1}, Shape{0, 4}}) {
    check_gradients([](Tensors in) { return dropout(in[0], 0.4, true); }, {random_array(shape, 9)});
    check_gradients(
        [&](Tensors in) {
          Node& node = *dropout(in[0], 0.4, true).node();
          return apply_dropout_mask(in[0], node.output(1), 0.4);
        },
        {random_array(shape, 9)});
  }
}

TEST(Dropout, RefusesWrongRatesInEveryMode) {
  for (const bool training : {false, true})
    for (double rate : {-0.1, 1.0, std::nan("")})
      EXPECT_THAT(build_error([&](Tensors in) { return std::vector{dropout(in[0], rate, training)}; },
                              {{DType::kFloat32, {3}}}),
                  HasSubstr("a rate in [0, 1)"));
  EXPECT_THAT(
      build_error([&](Tensors in) { return std::vector{dropout(in[0], 0.5, true)}; }, {{DType::kInt32, {3}}}),
      HasSubstr("float32"));
  EXPECT_THAT(build_error([&](Tensors in) { return std::vector{apply_dropout_mask(in[0], in[1], 0.5)}; },
                          {{DType::kFloat32, {65}}, {DType::kUInt8, {8}}}),
              HasSubstr("a mask of type uint8[16]"));
}

}  // namespace
}  // namespace mox::test
