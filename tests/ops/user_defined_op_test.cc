// An op that a user's program defines, with nothing of the tree touched: what docs/writing_an_op.md shows.
#include <fmt/format.h>
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ops/ops.h"
#include "runtime/base/error.h"
#include "runtime/graph/op.h"
#include "tests/support/gradient_check.h"

namespace {

using mox::GradientCall;
using mox::KernelArguments;
using mox::KernelRequest;
using mox::OpCall;
using mox::SourceLocation;
using mox::Tensor;
using mox::TensorType;

// The distance of every row of x [n, d] from one point [d], as [n]: sqrt(sum over j of (x[i, j] -
// point[j])^2).
std::vector<TensorType> infer_distance(const OpCall& call) {
  call.require(call.dtype(0) == mox::DType::kFloat32 && call.dtype(1) == mox::DType::kFloat32,
               "float32 inputs");
  call.require(call.shape(0).rank() == 2 && call.shape(1).rank() == 1 && call.shape(0)[1] == call.shape(1)[0],
               "rows [n, d] and a point [d]");
  return {{mox::DType::kFloat32, {call.shape(0)[0]}}};
}

std::vector<Tensor> distance_gradient(const GradientCall& call) {
  const Tensor &x = call.input(0), &point = call.input(1);
  const Tensor per_distance = mox::expand_dims(call.gradient() / call.output(), -1);  // [n, 1]
  const Tensor by_x = (x - point) * per_distance;
  return {by_x, mox::sum_to(-by_x, point.shape())};
}

mox::Kernel compile_distance(const KernelRequest& request) {
  const int64_t rows = request.node.inputs[0].shape()[0], columns = request.node.inputs[0].shape()[1];
  return mox::plain_kernel(request.node, [rows, columns](const KernelArguments& arguments) {
    const float* x = arguments.input<float>(0);
    const float* point = arguments.input<float>(1);
    float* distance = arguments.output<float>(0);
    arguments.team.parallel_for(rows, 64, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        float sum = 0;
        for (int64_t j = 0; j < columns; ++j)
          sum += (x[i * columns + j] - point[j]) * (x[i * columns + j] - point[j]);
        distance[i] = std::sqrt(sum);
      }
    });
  });
}

const mox::Op kDistance{
    .name = "distance", .infer = infer_distance, .gradient = distance_gradient, .compile = compile_distance};

Tensor distance(const Tensor& x, const Tensor& point, SourceLocation where = SourceLocation::current()) {
  return mox::make_tensor(kDistance, {x, point}, {}, where);
}

const mox::test::Build kBuild = [](std::span<const Tensor> in) { return distance(in[0], in[1]); };

TEST(UserDefinedOp, Computes) {
  const mox::Array x = mox::Array::from<float>({3, 2}, {3, 4, 0, 0, 6, 8}), origin(mox::DType::kFloat32, {2});
  EXPECT_THAT(mox::test::evaluate_op(kBuild, {x, origin}).values<float>(), ::testing::ElementsAre(5, 0, 10));
}

TEST(UserDefinedOp, HasItsGradient) {
  for (const mox::Shape& shape : {mox::Shape{4, 3}, mox::Shape{1, 1}, mox::Shape{0, 2}})
    mox::test::check_gradients(
        kBuild, {mox::test::random_array(shape, 1, 1, 2), mox::test::random_array({shape[1]}, 2, -1, 0)});
}

TEST(UserDefinedOp, StandsInAGraphBesideTheOthers) {
  const mox::Array x = mox::test::random_array({100, 3}, 3), point = mox::test::random_array({3}, 4);
  const mox::test::Build loss = [](std::span<const Tensor> in) {
    return mox::reduce_mean(mox::square(distance(in[0] * 2, in[1])));
  };
  const mox::test::Build plain = [](std::span<const Tensor> in) {
    return mox::reduce_mean(mox::reduce_sum(mox::square(in[0] * 2 - in[1]), {.axes = {1}}));
  };
  mox::test::expect_close(mox::test::evaluate_op(loss, {x, point}),
                          mox::test::evaluate_op(plain, {x, point}));
}

TEST(UserDefinedOp, ErrorsNameTheUsersLine) {
  mox::Graph graph;
  const Tensor x = graph.input(0, {mox::DType::kFloat32, {4, 3}}, SourceLocation::current());
  const std::string here = fmt::format("user_defined_op_test.cc:{}", __LINE__ + 1);
  const std::string message = mox::message_of<mox::InvalidArgument>([&] { distance(x, x); });
  EXPECT_THAT(message, ::testing::AllOf(::testing::HasSubstr(here), ::testing::HasSubstr("rows [n, d]"),
                                        ::testing::HasSubstr("float32[4, 3]")));
}

}  // namespace
