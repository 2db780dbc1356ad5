// Layers: their variables, values, sharing and errors.
#include "moxing/layers/layers.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ops/ops.h"
#include "runtime/base/error.h"
#include "runtime/graph/graph.h"
#include "tests/moxing/small_run.h"
#include "tests/support/evaluate.h"

namespace mox {
namespace {

using test::expect_close;
using test::random_array;
using test::run_graph;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string in_layers(int line) { return "layers_test.cc:" + std::to_string(line); }

float at(const Array& array, std::initializer_list<int64_t> index) {
  int64_t position = 0;
  int axis = 0;
  for (int64_t i : index) position = position * array.shape()[axis++] + i;
  return array.values<float>()[position];
}

class LayersTest : public ::testing::Test {
 protected:
  Tensor input(const Shape& shape, DType dtype = DType::kFloat32) {
    return graph_.input(inputs_++, {dtype, shape}, SourceLocation::current());
  }
  std::vector<std::string> variables() const {
    std::vector<std::string> text;
    for (const Tensor& v : graph_.variables())
      text.push_back(graph_.spec(v).name + " " + to_string(v.shape()));
    return text;
  }

  Graph graph_;
  GraphScope scope_{graph_};
  int inputs_ = 0;
};

TEST_F(LayersTest, TakeBFloat16AndGiveFloat32) {
  const Tensor image = input({2, 4, 6, 6}, DType::kBFloat16), row = input({2, 5}, DType::kBFloat16);
  EXPECT_EQ(layers::conv2d(image, 8, {3, 5}).dtype(), DType::kFloat32);
  EXPECT_EQ(layers::conv2d_transpose(image, 3, {2, 2}).dtype(), DType::kFloat32);
  EXPECT_EQ(layers::dense(row, 7).dtype(), DType::kFloat32);
  EXPECT_THAT(message_of<InvalidArgument>([&] {
                layers::dense(input({2, 5}, DType::kInt32), 7);
              }),
              HasSubstr("expected a float32 or bfloat16 tensor of rank 2"));
}

TEST_F(LayersTest, NameTheirVariablesByKindAndNumber) {
  const Tensor image = input({2, 4, 6, 6});
  EXPECT_EQ(layers::conv2d(image, 8, {3, 5}).shape(), (Shape{2, 8, 6, 6}));
  EXPECT_EQ(layers::conv2d(image, 8, {3, 3}, {.strides = {2, 2}, .groups = 2, .use_bias = false}).shape(),
            (Shape{2, 8, 3, 3}));
  EXPECT_EQ(layers::conv2d_transpose(image, 3, {2, 2}, {.strides = {2, 2}}).shape(), (Shape{2, 3, 12, 12}));
  const Tensor row = input({2, 5});
  layers::dense(layers::dense(row, 7), 3, {.use_bias = false});
  {
    auto scope = var_scope("block");
    layers::dense(row, 2);
  }
  layers::batch_norm(image, ModeKeys::TRAIN, {.name = "norm"});
  EXPECT_EQ(layers::embedding(input({2, 3}, DType::kInt64), 10, 4).shape(), (Shape{2, 3, 4}));
  EXPECT_THAT(
      variables(),
      ElementsAre("conv2d/kernel [8, 4, 3, 5]", "conv2d/bias [8]", "conv2d_1/kernel [8, 2, 3, 3]",
                  "conv2d_transpose/kernel [4, 3, 2, 2]", "conv2d_transpose/bias [3]", "dense/kernel [5, 7]",
                  "dense/bias [7]", "dense_1/kernel [7, 3]", "block/dense/kernel [5, 2]",
                  "block/dense/bias [2]", "norm/scale [4]", "norm/offset [4]", "norm/moving_mean [4]",
                  "norm/moving_variance [4]", "embedding/table [10, 4]"));
  EXPECT_FALSE(graph_.spec(graph_.find_variable("norm/moving_mean")).trainable);
  EXPECT_TRUE(graph_.spec(graph_.find_variable("norm/scale")).trainable);
}

TEST_F(LayersTest, ShareTheirVariablesUnderReuse) {
  const Tensor x = input({2, 5}), y = input({3, 5});
  layers::dense(x, 4, {.name = "shared"});
  const int first = __LINE__ - 1, second = __LINE__ + 1;
  const std::string message = message_of<InvalidArgument>([&] { layers::dense(y, 4, {.name = "shared"}); });
  EXPECT_THAT(message,
              AllOf(HasSubstr("shared/kernel"), HasSubstr(in_layers(first)), HasSubstr(in_layers(second))));
  {
    auto scope = var_scope("both", Reuse::kAuto);
    layers::dense(x, 4, {.name = "fc"});
    layers::dense(y, 4, {.name = "fc"});
  }
  EXPECT_THAT(variables(), ElementsAre("shared/kernel [5, 4]", "shared/bias [4]", "both/fc/kernel [5, 4]",
                                       "both/fc/bias [4]"));
}

TEST_F(LayersTest, ErrorsNameTheLayerAndTheCallersLine) {
  const Tensor row = input({2, 5}), image = input({2, 4, 6, 6}), ids = input({2}, DType::kInt32);
  const auto expect = [](const std::string& message, const std::string& layer, int line) {
    EXPECT_THAT(message, AllOf(HasSubstr(layer), HasSubstr(in_layers(line)))) << message;
  };
  // A call and its __LINE__ share a line.
  // clang-format off
  expect(message_of<InvalidArgument>([&] { layers::dense(image, 3); }), "dense", __LINE__);
  expect(message_of<InvalidArgument>([&] { layers::dense(Tensor(), 3); }), "dense", __LINE__);
  expect(message_of<InvalidArgument>([&] { layers::dense(row, 0); }), "units must be >= 1, got 0", __LINE__);
  expect(message_of<InvalidArgument>([&] { layers::conv2d(row, 3, {3, 3}); }), "conv2d", __LINE__);
  expect(message_of<InvalidArgument>([&] { layers::conv2d(image, -1, {3, 3}); }), "filters", __LINE__);
  expect(message_of<InvalidArgument>([&] { layers::conv2d(image, 3, {0, 3}); }), "kernel", __LINE__);
  expect(message_of<InvalidArgument>([&] { layers::conv2d(image, 3, {3, -3}); }), "kernel", __LINE__);
  expect(message_of<InvalidArgument>([&] { layers::conv2d(image, 6, {3, 3}, {.groups = 3}); }), "groups (3)", __LINE__);
  expect(message_of<InvalidArgument>([&] { layers::conv2d(image, 6, {3, 3}, {.groups = 0}); }), "groups", __LINE__);
  expect(message_of<InvalidArgument>([&] { layers::conv2d(image, 6, {3, 3}, {.strides = {0, 1}}); }), "strides", __LINE__);
  expect(message_of<InvalidArgument>([&] { layers::conv2d(image, 6, {9, 9}, {.padding = Padding::kValid}); }), "conv2d", __LINE__);
  expect(message_of<InvalidArgument>([&] { layers::conv2d_transpose(row, 3, {3, 3}); }), "conv2d_transpose", __LINE__);
  expect(message_of<InvalidArgument>([&] { layers::conv2d_transpose(image, 3, {3, 0}); }), "kernel", __LINE__);
  expect(message_of<InvalidArgument>([&] { layers::batch_norm(ids, ModeKeys::TRAIN); }), "batch_norm", __LINE__);
  expect(message_of<InvalidArgument>([&] { layers::batch_norm(input({2, 3}, DType::kInt64), ModeKeys::EVAL); }), "batch_norm", __LINE__);
  expect(message_of<InvalidArgument>([&] { layers::batch_norm(row, ModeKeys::TRAIN, {.momentum = 1.5f}); }), "momentum", __LINE__);
  expect(message_of<InvalidArgument>([&] { layers::dropout(row, 1.0f, ModeKeys::TRAIN); }), "dropout", __LINE__);
  expect(message_of<InvalidArgument>([&] { layers::embedding(row, 10, 4); }), "embedding", __LINE__);
  expect(message_of<InvalidArgument>([&] { layers::embedding(Tensor(), 10, 4); }), "embedding", __LINE__);
  expect(message_of<InvalidArgument>([&] { layers::embedding(ids, 0, 4); }), "vocabulary", __LINE__);
  expect(message_of<InvalidArgument>([&] { layers::embedding(ids, 10, 0); }), "width", __LINE__);
  // clang-format on
}

TEST_F(LayersTest, ARateOfDropoutIsRefusedInEveryMode) {
  EXPECT_THROW(layers::dropout(input({2, 5}), 1.5f, ModeKeys::EVAL), InvalidArgument);
}

TEST_F(LayersTest, DenseIsAProductAndABias) {
  const Array x = random_array({3, 4}, 1), kernel = random_array({4, 2}, 2), bias = random_array({2}, 3);
  const Tensor y = layers::dense(input(x.shape()), 2, {.name = "fc", .activation = relu});
  const Array result =
      run_graph(y, std::vector{x}, {.variables = {{"fc/kernel", kernel}, {"fc/bias", bias}}});
  Array expected(DType::kFloat32, {3, 2});
  for (int64_t n = 0; n < 3; ++n)
    for (int64_t j = 0; j < 2; ++j) {
      float sum = at(bias, {j});
      for (int64_t i = 0; i < 4; ++i) sum += at(x, {n, i}) * at(kernel, {i, j});
      expected.values<float>()[n * 2 + j] = std::max(sum, 0.0f);
    }
  expect_close(result, expected);
}

TEST_F(LayersTest, Conv2dIsASumOverTheWindow) {
  const Array x = random_array({2, 4, 5, 6}, 1), kernel = random_array({6, 2, 3, 3}, 2),
              bias = random_array({6}, 3);
  const Tensor y = layers::conv2d(input(x.shape()), 6, {3, 3}, {.name = "c", .strides = {2, 1}, .groups = 2});
  const Array result = run_graph(y, std::vector{x}, {.variables = {{"c/kernel", kernel}, {"c/bias", bias}}});
  ASSERT_EQ(result.shape(), (Shape{2, 6, 3, 6}));
  Array expected(result.type());
  size_t position = 0;
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t f = 0; f < 6; ++f)
      for (int64_t r = 0; r < 3; ++r)
        for (int64_t c = 0; c < 6; ++c) {
          double sum = at(bias, {f});
          for (int64_t i = 0; i < 2; ++i)  // SAME, here one row and one column of zeros on each side
            for (int64_t p = 0; p < 3; ++p)
              for (int64_t q = 0; q < 3; ++q) {
                const int64_t row = 2 * r + p - 1, column = c + q - 1;
                if (row >= 0 && row < 5 && column >= 0 && column < 6)
                  sum +=
                      static_cast<double>(at(x, {n, f / 3 * 2 + i, row, column})) * at(kernel, {f, i, p, q});
              }
          expected.values<float>()[position++] = static_cast<float>(sum);
        }
  expect_close(result, expected, 1e-4, 1e-4);
}

TEST_F(LayersTest, DropoutActsInTrainingOnly) {
  const Tensor x = input({100, 10});
  EXPECT_EQ(layers::dropout(x, 0.5f, ModeKeys::EVAL), x);
  EXPECT_EQ(layers::dropout(x, 0.5f, ModeKeys::PREDICT), x);
  Array ones(DType::kFloat32, x.shape());
  for (float& element : ones.values<float>()) element = 1;
  const Array y = run_graph(layers::dropout(x, 0.5f, ModeKeys::TRAIN), std::vector{ones});
  const auto values = y.values<float>();
  const auto zeros = std::count(values.begin(), values.end(), 0.0f);
  EXPECT_EQ(zeros + std::count(values.begin(), values.end(), 2.0f), 1000);
  EXPECT_NEAR(static_cast<double>(zeros), 500, 80);
}

TEST_F(LayersTest, EmbeddingTakesRows) {
  Array ids(DType::kInt64, {2});
  ids.values<int64_t>()[0] = 3, ids.values<int64_t>()[1] = 0;
  const Array table = random_array({4, 3}, 1);
  const Array rows = run_graph(layers::embedding(input({2}, DType::kInt64), 4, 3, {.name = "e"}),
                               std::vector{ids}, {.variables = {{"e/table", table}}});
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(at(rows, {0, i}), at(table, {3, i}));
    EXPECT_EQ(at(rows, {1, i}), at(table, {0, i}));
  }
}

// Batch normalisation through real runs: what TRAIN leaves behind is what EVAL uses.
class BatchNormRun : public SmallRun {
 protected:
  static ModelSpec model(const Inputs& in, ModeKeys mode) {
    const Tensor y = layers::batch_norm(in[0], mode, {.name = "norm", .momentum = 0.75f, .epsilon = 0.5f});
    return {.loss = reduce_sum(y) * 0.0f, .log_info = {{"last", reduce_max(y)}}};
  }
};

TEST_F(BatchNormRun, MovingAveragesFollowTheBatches) {
  auto s = spec();
  s.model_fn = model;
  std::vector<float> normalised;
  s.hooks = {after_run_hook([&](Session&, const StepResult& result) {
    normalised.push_back(static_cast<float>(result.number("last")));
  })};
  run_or_throw(s);
  double mean = 0, variance = 1;
  for (int step = 0; step < 4; ++step) {  // of (0, 1), (2, 3), (4, 5), (6, 7)
    mean = 0.75 * mean + 0.25 * (2 * step + 0.5);
    variance = 0.75 * variance + 0.25 * 0.5;  // unbiased: divided by the number of values less one
    EXPECT_NEAR(normalised[step], 0.5 / std::sqrt(0.25 + 0.5), 1e-5) << "TRAIN uses the batch's own";
  }
  EXPECT_NEAR(saved("norm/moving_mean").item(), mean, 1e-5);
  EXPECT_NEAR(saved("norm/moving_variance").item(), variance, 1e-5);

  s.run_mode = ModeKeys::EVAL;
  s.hooks = {};
  s.batch_size = 4;
  const Metrics metrics = run_or_throw(s).evaluation;  // of 0, 1, 2, 3
  EXPECT_NEAR(metrics.at(0).second, (3 - mean) / std::sqrt(variance + 0.5), 1e-5);
}

TEST_F(BatchNormRun, ASharedLayerFollowsAllItsUsesInTurn) {
  auto s = spec();
  s.max_number_of_steps = 1;  // of (0, 1)
  s.model_fn = [](const Inputs& in, ModeKeys mode) {
    auto scope = var_scope("both", Reuse::kAuto);
    const auto norm = [&](const Tensor& x) {
      return layers::batch_norm(x, mode, {.name = "norm", .momentum = 0.5f});
    };
    const Tensor first = norm(in[0]);
    const Tensor second = norm(in[0] + 10.0f);
    return ModelSpec{.loss = reduce_sum(first) + reduce_sum(second)};
  };
  run_or_throw(s);
  EXPECT_FLOAT_EQ(saved("both/norm/moving_mean").values<float>()[0],
                  0.5f * (0.5f * 0 + 0.5f * 0.5f) + 0.5f * 10.5f);
}

// Names were found by counting from 1 and looking at all variables each time: the cube of their number.
TEST_F(LayersTest, ThousandsWithoutANameGetTheFirstFreeNumbers) {
  Tensor x = input({1, 2});
  layers::dense(x, 1, {.name = "dense_3"});
  for (int i = 0; i < 6000; ++i) x = layers::dense(x, 2, {.use_bias = false});
  const std::vector<std::string> names = variables();
  EXPECT_THAT(
      std::vector(names.begin(), names.begin() + 7),
      ElementsAre("dense_3/kernel [2, 1]", "dense_3/bias [1]", "dense/kernel [2, 2]", "dense_1/kernel [2, 2]",
                  "dense_2/kernel [2, 2]", "dense_4/kernel [2, 2]", "dense_5/kernel [2, 2]"));
  EXPECT_EQ(names.back(), "dense_6000/kernel [2, 2]");
}

}  // namespace
}  // namespace mox
