#include <gmock/gmock-more-matchers.h>

#include <algorithm>
#include <numeric>

#include "ops/shape/shape.h"
#include "tests/ops/run_op.h"

namespace mox::test {
namespace {

using ::testing::HasSubstr;
using Tensors = std::span<const Tensor>;

// result[i...] = x[j...] with j[permutation[d]] = i[d], element by element.
template <typename T>
std::vector<T> reference(const Array& x, const std::vector<int64_t>& permutation) {
  const auto strides = x.shape().strides();
  std::vector<T> result;
  std::vector<int64_t> index(permutation.size(), 0);
  for (int64_t n = 0; n < x.elements(); ++n) {
    int64_t from = 0;
    for (size_t d = 0; d < index.size(); ++d) from += index[d] * strides[permutation[d]];
    result.push_back(x.values<T>()[from]);
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < x.shape()[static_cast<int>(permutation[d])]) break;
      index[d] = 0;
    }
  }
  return result;
}

template <typename T>
void expect_all_permutations(const Shape& shape) {
  const Array x = counting<T>(shape);
  std::vector<int64_t> permutation(static_cast<size_t>(shape.rank()));
  std::iota(permutation.begin(), permutation.end(), 0);
  do {
    const Array y = run_op([&](Tensors in) { return transpose(in[0], permutation); }, {x});
    for (size_t d = 0; d < permutation.size(); ++d)
      EXPECT_EQ(y.shape()[static_cast<int>(d)], shape[static_cast<int>(permutation[d])]);
    EXPECT_EQ(values_of<T>(y), reference<T>(x, permutation)) << to_string(shape);
  } while (std::next_permutation(permutation.begin(), permutation.end()));
}

TEST(Transpose, MovesEveryElementToItsPlace) {
  expect_all_permutations<float>({2, 3, 4, 5});
  expect_all_permutations<float>({1, 3, 1, 5});
  expect_all_permutations<float>({2, 0, 3});
  expect_all_permutations<float>({});
  expect_all_permutations<float>({7});
  expect_all_permutations<int64_t>({3, 5, 2});
  expect_all_permutations<uint8_t>({3, 5, 7});
  expect_all_permutations<bool>({2, 3});
}

TEST(Transpose, WalksTilesThatDoNotDivideTheExtents) {
  expect_all_permutations<float>({67, 131});
  expect_all_permutations<int32_t>({3, 70, 65});
  expect_all_permutations<float>({300, 301});  // large enough for every thread of the team
}

TEST(Transpose, SwapsTheLastTwoAxesByDefault) {
  const Array x = counting({2, 3, 4});
  const Array y = run_op([](Tensors in) { return transpose(in[0]); }, {x});
  EXPECT_EQ(y.shape(), (Shape{2, 4, 3}));
  EXPECT_EQ(values_of<float>(y), reference<float>(x, {0, 2, 1}));
}

TEST(Transpose, CountsNegativeAxesFromTheBack) {
  const Array x = counting({2, 3, 4});
  const Array y = run_op([](Tensors in) { return transpose(in[0], {-1, 0, -2}); }, {x});
  EXPECT_EQ(values_of<float>(y), reference<float>(x, {2, 0, 1}));
}

TEST(Transpose, RefusesWhatIsNoPermutation) {
  const auto error = [](std::vector<int64_t> permutation) {
    return build_error([&](Tensors in) { return std::vector{transpose(in[0], permutation)}; },
                       {{DType::kFloat32, {2, 3}}});
  };
  EXPECT_THAT(error({0}), HasSubstr("an entry for every axis"));
  EXPECT_THAT(error({0, 0}), HasSubstr("every axis named once"));
  EXPECT_THAT(error({0, 2}), HasSubstr("an axis in [-2, 2), not 2"));
  EXPECT_THAT(build_error([](Tensors in) { return std::vector{transpose(in[0])}; }, {{DType::kFloat32, {3}}}),
              HasSubstr("transpose"));
}

}  // namespace
}  // namespace mox::test
