// Operations that are alike share one description; what differs in anything that a kernel may be chosen by
// has its own.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ops/processor/internal/recently_made.h"
#include "ops/processor/onednn_version.h"
#include "runtime/base/team.h"

namespace mox::onednn {
namespace {

using Type = dnnl::memory::data_type;

dnnl::memory::desc matrix(int64_t rows, int64_t columns, int64_t row_stride, Type type = Type::f32) {
  return {{rows, columns}, type, dnnl::memory::dims{row_stride, 1}};
}

const void* product(const dnnl::memory::desc& a) {
  return describe<dnnl::matmul>(a, matrix(4, 4, 4), matrix(1, 4, 4)).get();
}

TEST(DescribedOnce, AreOperationsThatAreAlike) {
  EXPECT_EQ(product(matrix(1, 4, 4)), product(matrix(1, 4, 4)));
  const auto image = dnnl::memory::desc({2, 16, 8, 8}, Type::f32, dnnl::memory::format_tag::any);
  const auto filter = dnnl::memory::desc({16, 16, 3, 3}, Type::f32, dnnl::memory::format_tag::any);
  const dnnl::memory::dims one{1, 1}, none{0, 0};
  const auto forward = [&] {
    return describe<dnnl::convolution_forward>(dnnl::prop_kind::forward_training,
                                               dnnl::algorithm::convolution_direct, image, filter, image, one,
                                               none, one, one);
  };
  EXPECT_EQ(forward().get(), forward().get());
  const auto gradient = [&] {
    return describe_gradient<dnnl::convolution_backward_data>(forward(), dnnl::algorithm::convolution_direct,
                                                              image, filter, image, one, none, one, one);
  };
  EXPECT_EQ(gradient().get(), gradient().get());
}

// oneDNN calls two layouts equal whose extents of one have other strides; its products do not
// treat them alike.
TEST(DescribedOnce, AreNotThoseThatDiffer) {
  EXPECT_EQ(matrix(1, 4, 4), matrix(1, 4, 8));
  EXPECT_NE(product(matrix(1, 4, 4)), product(matrix(1, 4, 8)));
  const auto on_team_of = [](int threads) {
    const Team team(threads);
    const EnteredTeam entered(team);
    return product(matrix(1, 4, 4));
  };
  EXPECT_NE(on_team_of(1), on_team_of(2));
}

TEST(RecentlyMade, ForgetsWhatWasNotAskedForTheLongest) {
  RecentlyMade<int, std::string> words(2);
  std::vector<int> made;
  const auto word = [&](int key) {
    return words.of(key, [&] {
      made.push_back(key);
      return std::to_string(key);
    });
  };
  for (const int key : {1, 2, 1, 3, 1, 2}) EXPECT_EQ(word(key), std::to_string(key));
  EXPECT_EQ(made, (std::vector<int>{1, 2, 3, 2}));
}

}  // namespace
}  // namespace mox::onednn
