// gather, embedding_lookup, unsorted_segment_sum, one_hot and the pair that works along the last axis.
#include <gmock/gmock-more-matchers.h>

#include "ops/indexing/indexing.h"
#include "tests/ops/run_op.h"

namespace mox::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Tensors = std::span<const Tensor>;

TEST(Gather, TakesRows) {
  const Array ids = Array::from<int32_t>({2, 2}, {2, 0, 2, 1});
  const Array y = run_op([](Tensors in) { return gather(in[0], in[1]); }, {counting({3, 2}), ids});
  EXPECT_EQ(y.shape(), (Shape{2, 2, 2}));
  EXPECT_THAT(values_of<float>(y), ElementsAre(4, 5, 0, 1, 4, 5, 2, 3));
}

TEST(Gather, TakesSlicesOfAnyAxis) {
  const Array ids = Array::from<int64_t>({3}, {3, 3, 1});
  const Array x = counting<int64_t>({2, 4, 3});
  const Array y = run_op([](Tensors in) { return gather(in[0], in[1], -2); }, {x, ids});
  std::vector<int64_t> expected;
  for (int64_t o = 0; o < 2; ++o)
    for (int64_t id : {3, 3, 1})
      for (int64_t i = 0; i < 3; ++i) expected.push_back(o * 12 + id * 3 + i);
  EXPECT_EQ(values_of<int64_t>(y), expected);
}

TEST(Gather, TakesScalarAndEmptyIndices) {
  const Array x = counting({3, 2});
  EXPECT_THAT(values_of<float>(
                  run_op([](Tensors in) { return gather(in[0], in[1]); }, {x, Array::scalar<int32_t>(1)})),
              ElementsAre(2, 3));
  EXPECT_EQ(run_op([](Tensors in) { return gather(in[0], in[1]); }, {x, counting<int32_t>({0})}).shape(),
            (Shape{0, 2}));
  EXPECT_EQ(
      run_op([](Tensors in) { return gather(in[0], in[1]); }, {counting({3, 0}), counting<int32_t>({2})})
          .shape(),
      (Shape{2, 0}));
}

TEST(Gather, NamesAnIndexOutOfRange) {
  const auto error = [](Array x, Array ids) {
    return message_of<InvalidArgument>([&] {
      run_op([](Tensors in) { return gather(in[0], in[1]); }, {x, ids});
    });
  };
  EXPECT_THAT(error(counting({3, 2}), Array::from<int32_t>({2, 2}, {0, 1, 3, 9})),
              AllOf(HasSubstr("gather 'gather' at"), HasSubstr("gather_test.cc"), HasSubstr("in [0, 3)"),
                    HasSubstr("the index at position [1, 0] is 3")));
  EXPECT_THAT(error(counting({3, 2}), Array::from<int64_t>({1}, {-1})), HasSubstr("at position [0] is -1"));
  EXPECT_THAT(error(counting({3, 2}), Array::from<int64_t>({1}, {int64_t{1} << 40})),
              HasSubstr("is 1099511627776"));
  EXPECT_THAT(error(counting({0, 2}), Array::from<int64_t>({1}, {0})), HasSubstr("in [0, 0)"));
}

TEST(Gather, RefusesWrongTypes) {
  const auto error = [](const TensorType& x, const TensorType& ids, int64_t axis) {
    return build_error([&](Tensors in) { return std::vector{gather(in[0], in[1], axis)}; }, {x, ids});
  };
  EXPECT_THAT(error({DType::kFloat32, {3}}, {DType::kFloat32, {2}}, 0),
              HasSubstr("indices of dtype int32 or int64"));
  EXPECT_THAT(error({DType::kFloat32, {3}}, {DType::kInt32, {2}}, 1), HasSubstr("an axis in [-1, 1), not 1"));
  EXPECT_THAT(error({DType::kFloat32, {}}, {DType::kInt32, {2}}, 0), HasSubstr("at least one axis"));
}

TEST(EmbeddingLookup, TakesRowsAndNamesWrongIds) {
  const Array y = run_op([](Tensors in) { return embedding_lookup(in[0], in[1]); },
                         {counting({4, 3}), Array::from<int32_t>({2, 1}, {3, 1})});
  EXPECT_EQ(y.shape(), (Shape{2, 1, 3}));
  EXPECT_THAT(values_of<float>(y), ElementsAre(9, 10, 11, 3, 4, 5));
  EXPECT_THAT(message_of<InvalidArgument>([] {
                run_op([](Tensors in) { return embedding_lookup(in[0], in[1]); },
                       {counting({4, 3}), Array::from<int32_t>({2, 1}, {3, 4})});
              }),
              AllOf(HasSubstr("every id in [0, 4), as there are 4 rows in the table"),
                    HasSubstr("the id at position [1, 0] is 4")));
  EXPECT_THAT(build_error([](Tensors in) { return std::vector{embedding_lookup(in[0], in[1])}; },
                          {{DType::kFloat32, {4}}, {DType::kInt32, {1}}}),
              HasSubstr("a table [vocabulary, width]"));
}

TEST(UnsortedSegmentSum, AddsSlicesOfASegment) {
  const Array segments = Array::from<int32_t>({4}, {2, 0, 2, 2});
  const Array y =
      run_op([](Tensors in) { return unsorted_segment_sum(in[0], in[1], 4); }, {counting({4, 2}), segments});
  EXPECT_THAT(values_of<float>(y), ElementsAre(2, 3, 0, 0, 10, 13, 0, 0));
}

TEST(UnsortedSegmentSum, WorksAlongAnyAxisWithSegmentsOfAnyRank) {
  const Array segments = Array::from<int64_t>({2, 2}, {1, 0, 1, 1});
  const Array x = counting<int32_t>({2, 2, 2, 3});
  const Array y = run_op([](Tensors in) { return unsorted_segment_sum(in[0], in[1], 2, 1); }, {x, segments});
  ASSERT_EQ(y.shape(), (Shape{2, 2, 3}));
  for (int o = 0; o < 2; ++o)
    for (int i = 0; i < 3; ++i) {
      const int base = o * 12 + i;
      EXPECT_EQ(y.values<int32_t>()[o * 6 + i], base + 3);
      EXPECT_EQ(y.values<int32_t>()[o * 6 + 3 + i], base + (base + 6) + (base + 9));
    }
}

TEST(UnsortedSegmentSum, GivesTheSameBitsOnAnyTeam) {  // run_op compares them
  Array x(DType::kFloat32, {5000, 16});
  Array segments(DType::kInt32, {5000});
  for (size_t i = 0; i < 80000; ++i) x.values<float>()[i] = 1.0f / static_cast<float>(i + 1);
  for (size_t i = 0; i < 5000; ++i) segments.values<int32_t>()[i] = static_cast<int32_t>(i * 7919 % 3000);
  const Array y = run_op([](Tensors in) { return unsorted_segment_sum(in[0], in[1], 3000); }, {x, segments});
  std::vector<float> expected(3000 * 16, 0.0f);
  for (size_t i = 0; i < 80000; ++i)
    expected[static_cast<size_t>(segments.values<int32_t>()[i / 16]) * 16 + i % 16] += x.values<float>()[i];
  EXPECT_EQ(values_of<float>(y), expected);
}

TEST(UnsortedSegmentSum, TakesEmptyInputs) {
  const auto sum = [](Tensors in) { return unsorted_segment_sum(in[0], in[1], 2); };
  EXPECT_THAT(values_of<float>(run_op(sum, {counting({0, 2}), counting<int32_t>({0})})),
              ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(run_op(sum, {counting({2, 0}), counting<int32_t>({2})}).shape(), (Shape{2, 0}));
}

TEST(UnsortedSegmentSum, RefusesWrongSegmentsAndShapes) {
  EXPECT_THAT(message_of<InvalidArgument>([] {
                run_op([](Tensors in) { return unsorted_segment_sum(in[0], in[1], 2); },
                       {counting({3}), counting<int32_t>({3})});
              }),
              HasSubstr("the segment at position [2] is 2"));
  const auto error = [](const TensorType& x, const TensorType& segments, int64_t count, int64_t axis) {
    return build_error(
        [&](Tensors in) { return std::vector{unsorted_segment_sum(in[0], in[1], count, axis)}; },
        {x, segments});
  };
  EXPECT_THAT(error({DType::kFloat32, {3}}, {DType::kInt32, {2}}, 2, 0),
              HasSubstr("contains the shape of segments"));
  EXPECT_THAT(error({DType::kFloat32, {3}}, {DType::kInt32, {3}}, 2, 1),
              HasSubstr("contains the shape of segments"));
  EXPECT_THAT(error({DType::kFloat32, {3}}, {DType::kInt32, {3}}, -1, 0), HasSubstr("a segment_count >= 0"));
  EXPECT_THAT(error({DType::kBool, {3}}, {DType::kInt32, {3}}, 1, 0), HasSubstr("float32, int32 or int64"));
}

TEST(OneHot, MarksThePosition) {
  const Array ids = Array::from<int64_t>({2, 1}, {2, 0});
  const Array y = run_op([](Tensors in) { return one_hot(in[0], 3); }, {ids});
  EXPECT_EQ(y.shape(), (Shape{2, 1, 3}));
  EXPECT_THAT(values_of<float>(y), ElementsAre(0, 0, 1, 1, 0, 0));
  EXPECT_THAT(values_of<bool>(run_op([](Tensors in) { return one_hot(in[0], 3, DType::kBool); }, {ids})),
              ElementsAre(false, false, true, true, false, false));
  EXPECT_THAT(values_of<int64_t>(run_op([](Tensors in) { return one_hot(in[0], 3, DType::kInt64); }, {ids})),
              ElementsAre(0, 0, 1, 1, 0, 0));
  EXPECT_EQ(run_op([](Tensors in) { return one_hot(in[0], 3); }, {counting<int32_t>({0})}).shape(),
            (Shape{0, 3}));
  EXPECT_EQ(run_op([](Tensors in) { return one_hot(in[0], 0); }, {counting<int32_t>({0})}).shape(),
            (Shape{0, 0}));
}

TEST(OneHot, RefusesWhatDoesNotFit) {
  EXPECT_THAT(message_of<InvalidArgument>(
                  [] { run_op([](Tensors in) { return one_hot(in[0], 2); }, {counting<int32_t>({3})}); }),
              HasSubstr("the index at position [2] is 2"));
  EXPECT_THAT(build_error([](Tensors in) { return std::vector{one_hot(in[0], -1)}; }, {{DType::kInt32, {3}}}),
              HasSubstr("a depth >= 0"));
  EXPECT_THAT(
      build_error([](Tensors in) { return std::vector{one_hot(in[0], 2)}; }, {{DType::kFloat32, {3}}}),
      HasSubstr("indices of dtype int32 or int64"));
}

TEST(TakeAlongLastAxis, TakesFromEachRow) {
  const Array ids = Array::from<int32_t>({2, 3}, {2, 2, 0, 1, 0, 1});
  const Array y =
      run_op([](Tensors in) { return take_along_last_axis(in[0], in[1]); }, {counting({2, 3}), ids});
  EXPECT_THAT(values_of<float>(y), ElementsAre(2, 2, 0, 4, 3, 4));
  EXPECT_EQ(run_op([](Tensors in) { return take_along_last_axis(in[0], in[1]); },
                   {counting<int64_t>({2, 3}), counting<int32_t>({2, 0})})
                .shape(),
            (Shape{2, 0}));
  EXPECT_THAT(build_error([](Tensors in) { return std::vector{take_along_last_axis(in[0], in[1])}; },
                          {{DType::kFloat32, {2, 3}}, {DType::kInt32, {3, 3}}}),
              HasSubstr("differ on the last axis alone"));
}

TEST(ScatterAlongLastAxis, AddsIntoEachRow) {
  const Array ids = Array::from<int64_t>({2, 3}, {2, 2, 0, 1, 0, 1});
  const Array y =
      run_op([](Tensors in) { return scatter_along_last_axis(in[0], in[1], 4); }, {counting({2, 3}), ids});
  EXPECT_THAT(values_of<float>(y), ElementsAre(2, 0, 1, 0, 4, 8, 0, 0));
  EXPECT_THAT(
      message_of<InvalidArgument>([&] {
        run_op([](Tensors in) { return scatter_along_last_axis(in[0], in[1], 2); }, {counting({2, 3}), ids});
      }),
      HasSubstr("the index at position [0, 0] is 2"));
}

}  // namespace
}  // namespace mox::test
