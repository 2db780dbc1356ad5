// Which values an evaluation may average, by what the graph shows.
#include "moxing/engine/compile/internal/sample_means.h"

#include <gtest/gtest.h>

#include <functional>

#include "moxing/layers/layers.h"
#include "moxing/model/variables.h"
#include "ops/ops.h"

namespace mox::internal {
namespace {

constexpr int64_t kSamples = 6;

// in[0]: float32 [6, 4]; in[1]: int32 labels [6]; in[2]: float32 [6].
std::optional<SumDivisor> mean_of(const std::function<Tensor(std::span<const Tensor> in)>& make) {
  Graph graph;
  const GraphScope scope(graph);
  const SourceLocation here = SourceLocation::current();
  const std::vector<Tensor> in = {graph.input(0, {DType::kFloat32, {kSamples, 4}}, here),
                                  graph.input(1, {DType::kInt32, {kSamples}}, here),
                                  graph.input(2, {DType::kFloat32, {kSamples}}, here)};
  const Tensor value = make(in);
  return means_over_samples(graph, std::vector{value}, kSamples)[0];
}
bool is_mean(const std::function<Tensor(std::span<const Tensor> in)>& make) {
  return mean_of(make).has_value();
}

TEST(SampleMeans, MeansOverRows) {
  using In = std::span<const Tensor>;
  EXPECT_TRUE(is_mean([](In in) { return reduce_mean(sparse_softmax_cross_entropy(in[0], in[1])); }));
  EXPECT_TRUE(is_mean([](In in) { return accuracy(in[0], in[1]); }));
  EXPECT_TRUE(is_mean([](In in) { return mean_squared_error(in[0], relu(in[0])); }));
  EXPECT_TRUE(is_mean([](In in) { return huber_loss(in[2], 0.0f * in[2]); }));
  EXPECT_TRUE(is_mean([](In in) { return reduce_mean(reduce_max(in[0], {.axes = {1}})); }));
  EXPECT_TRUE(is_mean([](In in) { return reduce_mean(reduce_mean(in[0], {.axes = {0}})); }));
  EXPECT_TRUE(is_mean([](In in) { return reduce_sum(in[2]) / static_cast<float>(kSamples); }));
  EXPECT_TRUE(is_mean([](In in) { return reduce_sum(in[2]) * (1.0f / static_cast<float>(kSamples)); }));
  EXPECT_TRUE(is_mean([](In in) { return 1.0f - reduce_mean(in[2]) * 0.5f + accuracy(in[0], in[1]); }));
  EXPECT_TRUE(is_mean([](In in) { return reduce_mean(reshape(in[0], {kSamples * 4})); }));
  EXPECT_TRUE(is_mean([](In in) { return reduce_mean(cast(in_top_k(in[0], in[1], 2), DType::kFloat32)); }));
  EXPECT_TRUE(is_mean([](In in) { return reduce_mean(class_weights(in[1], {1, 2, 3, 4}) * in[2]); }));
  EXPECT_TRUE(is_mean([](In in) {
    const Tensor hidden = layers::dense(in[0], 8, {.name = "hidden", .activation = relu});
    const Tensor logits = layers::dense(layers::dropout(hidden, 0.5f, ModeKeys::EVAL), 3, {.name = "out"});
    return reduce_mean(sparse_softmax_cross_entropy(logits, in[1])) +
           l2_loss(get_variable("w", {3}, zeros())) * 0.1f;
  }));
  EXPECT_TRUE(is_mean([](In) { return get_variable("w", {}, zeros()) + 0.0f; })) << "the same in every batch";
}

// So that a fixed number is found out where another batch has another number of samples.
TEST(SampleMeans, ByHowMuchItsSumsAreDivided) {
  using In = std::span<const Tensor>;
  constexpr float kAll = kSamples;
  const auto expect = [](double divisor, const std::function<Tensor(In)>& make) {
    EXPECT_NEAR(mean_of(make).value_or(-1), divisor, 1e-5);
  };
  expect(0, [](In in) { return reduce_mean(in[2]) * 0.5f; });
  expect(1, [](In in) { return reduce_sum(in[2]) / kAll; });
  expect(2, [](In in) { return reduce_sum(in[2]) * (1.0f / (2 * kAll)); });
  expect(2, [](In in) { return 1.0f - reduce_sum(in[2]) / kAll * 0.5f; });
  // Whatever comes first: 12 is a multiple of the samples, and not what makes it a mean.
  expect(12, [](In in) { return reduce_sum(in[2]) / 12.0f / kAll; });
  expect(5, [](In in) { return reduce_sum(in[0]) / (4 * kAll) + neg(reduce_sum(in[2]) / kAll); });
}

// Each sample with itself alone: attention over its parts, and a loss of each part.
TEST(SampleMeans, ProductsOfTheParts) {
  using In = std::span<const Tensor>;
  EXPECT_TRUE(is_mean([](In in) {
    const Tensor parts = reshape(in[0], {kSamples, 2, 2});
    const Tensor share = softmax(matmul(parts, parts, {.transpose_b = true}));
    const Tensor answer = reshape(matmul(share, parts), {kSamples * 2, 2});
    return reduce_mean(sparse_softmax_cross_entropy(
        answer, reshape(broadcast_to(expand_dims(in[1], 1), {kSamples, 2}), {kSamples * 2})));
  }));
  EXPECT_FALSE(is_mean([](In in) { return reduce_mean(matmul(in[0], in[0], {.transpose_b = true})); }))
      << "each sample with each";
  EXPECT_FALSE(is_mean([](In in) {  // sums over the samples, six of them
    return reduce_mean(square(matmul(constant(Array(DType::kFloat32, {kSamples, 1, kSamples})), in[0])));
  }));
}

TEST(SampleMeans, WhatIsNone) {
  using In = std::span<const Tensor>;
  EXPECT_FALSE(is_mean([](In in) { return reduce_max(in[2]); }));
  EXPECT_FALSE(is_mean([](In in) { return reduce_sum(in[2]); }));
  EXPECT_FALSE(is_mean([](In in) { return reduce_sum(in[2]) / 100.0f; })) << "of a fixed number";
  EXPECT_FALSE(is_mean([](In in) { return l2_loss(in[0]); }));
  EXPECT_FALSE(is_mean([](In in) { return sqrt(mean_squared_error(in[0], relu(in[0]))); }));
  EXPECT_FALSE(is_mean([](In in) { return exp(reduce_mean(in[2])); })) << "perplexity";
  EXPECT_FALSE(is_mean([](In in) { return square(reduce_mean(in[2])); }));
  EXPECT_FALSE(is_mean([](In in) { return weighted_mean(in[2], in[2]); }));
  EXPECT_FALSE(is_mean([](In in) { return reduce_sum(in[2]) / reduce_sum(relu(in[2])); }));
  EXPECT_FALSE(is_mean([](In in) { return reduce_mean(square(in[2] - reduce_mean(in[2]))); })) << "variance";
  EXPECT_FALSE(is_mean([](In in) { return reduce_mean(softmax(in[2])); })) << "over the samples";
  EXPECT_FALSE(is_mean([](In in) { return reduce_mean(transpose(in[0], {1, 0})); }));
  EXPECT_FALSE(is_mean([](In in) { return reduce_mean(in[2] * expand_dims(in[2], 1)); }))
      << "pairs of samples";
  // The area under the curve as programs write it: the share of ordered pairs.
  EXPECT_FALSE(is_mean([](In in) {
    const Tensor difference = expand_dims(in[2], 1) - expand_dims(in[2], 0);
    return reduce_mean(cast(greater(difference, 0), DType::kFloat32));
  }));
}

// Their results have as many rows as there are samples, or a multiple of that, and none of them is a
// sample's.
TEST(SampleMeans, WhatWorksAlongTheSamples) {
  using In = std::span<const Tensor>;
  constexpr int64_t kClasses = 2 * kSamples;
  const auto sums_of_classes = [](const Tensor& x, In in) {
    return unsorted_segment_sum(x, in[1], kClasses);
  };
  EXPECT_FALSE(is_mean([&](In in) {
    return reduce_mean(sums_of_classes(in[2], in) / maximum(sums_of_classes(ones_like(in[2]), in), 1.0f));
  })) << "balanced accuracy";
  EXPECT_FALSE(is_mean([](In in) { return reduce_mean(square(scatter_along_last_axis(in[2], in[1], 12))); }));
  EXPECT_FALSE(is_mean(
      [](In in) { return reduce_mean(take_along_last_axis(in[2], fill({kSamples}, 0, DType::kInt32))); }));
  EXPECT_FALSE(is_mean([](In in) { return reduce_mean(square(softmax(in[0], 0))); }));
  EXPECT_FALSE(is_mean([](In in) { return reduce_mean(log_softmax(in[0], -2)); }));
  EXPECT_FALSE(is_mean([](In in) {
    return reduce_mean(cast(argmax(concat({in[0], in[0], in[0]}, 1), 0), DType::kFloat32));
  }));
  EXPECT_FALSE(is_mean([](In in) { return reduce_mean(gather(in[0], in[1], 1)); })) << "all pairs";
  EXPECT_FALSE(is_mean([](In in) { return reduce_mean(gather(fill({12, 4}, 1), in[1], 1)); }));
  EXPECT_FALSE(is_mean([](In in) { return reduce_mean(gather(in[0], fill({6}, 0, DType::kInt32), -2)); }));
  EXPECT_FALSE(is_mean([](In in) {
    return reduce_mean(abs(broadcast_to(in[2], {kSamples, kSamples}) - expand_dims(in[2], 1)));
  })) << "all pairs";
  EXPECT_FALSE(is_mean([](In in) {
    const Tensor columns = concat({in[0], in[0], in[0]}, 1);
    return reduce_mean(square(matmul(columns, fill({kSamples, 2}, 1), {.transpose_a = true})));
  }));
  EXPECT_FALSE(is_mean([](In in) {
    const Tensor before = slice(pad(in[2], {{kSamples, 0}}), {kSamples - 1}, {kSamples});
    return reduce_mean(square(in[2] - before));
  })) << "each sample beside the one before it";
  EXPECT_FALSE(is_mean([](In in) {
    const Tensor columns = concat({in[0], in[0], in[0]}, 1);
    return reduce_mean(sqrt(batch_norm(columns, fill({12}, 1), fill({12}, 0)).variance));
  }));
  EXPECT_FALSE(is_mean([](In in) {
    return reduce_mean(square(sum_to(concat({in[0], in[0], in[0]}, 1), {12})));
  }));
  EXPECT_TRUE(is_mean([](In in) { return reduce_mean(softmax(in[0], 1)); }));
  EXPECT_TRUE(is_mean([](In in) { return reduce_mean(gather(in[0], fill({3}, 0, DType::kInt32), 1)); }));
  EXPECT_TRUE(is_mean([](In in) { return reduce_mean(gather(fill({12, 4}, 1), in[1])); }));
  EXPECT_TRUE(is_mean([](In in) {
    return reduce_mean(square(unsorted_segment_sum(in[0], fill({4}, 0, DType::kInt32), 2, 1)));
  }));
  EXPECT_TRUE(is_mean([](In in) { return reduce_mean(take_along_last_axis(in[0], expand_dims(in[1], 1))); }));
  EXPECT_TRUE(is_mean([](In in) { return sum_to(in[0], {}) / static_cast<float>(kSamples); }));
}

// The name of the first op that puts each sample beside all others.
std::string pairs_of(const std::function<void(const Tensor& row, const Tensor& column)>& make,
                     int64_t samples = kSamples) {
  Graph graph;
  const GraphScope scope(graph);
  const SourceLocation here = SourceLocation::current();
  make(graph.input(0, {DType::kFloat32, {samples}}, here),
       graph.input(1, {DType::kFloat32, {samples, 1}}, here));
  const Node* const node = first_of_all_pairs(graph, samples);
  return node ? std::string(node->op->name) : "";
}

TEST(SampleMeans, ARowAndAColumnOfTheSamplesMakeAllPairs) {
  using T = const Tensor&;
  EXPECT_EQ(pairs_of([](T row, T column) { square(column - row); }), "sub");
  EXPECT_EQ(pairs_of([](T row, T column) { abs(row * 2.0f - relu(column)); }), "sub");
  EXPECT_EQ(pairs_of([](T row, T column) { select(greater(row, 0), column, 0); }), "select");
  EXPECT_EQ(pairs_of([](T row, T column) { square(squeeze(column, {1}) - row); }), "");
  EXPECT_EQ(pairs_of([](T row, T) { expand_dims(row, 1) - expand_dims(row, 0); }), "") << "as written";
  EXPECT_EQ(pairs_of([](T, T column) { get_variable("b", {kSamples}) - column; }), "") << "by chance";
  EXPECT_EQ(pairs_of([](T row, T column) { row - column; }, 1), "");
}

}  // namespace
}  // namespace mox::internal
