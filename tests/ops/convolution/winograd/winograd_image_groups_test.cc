// A few images of a convolution at a time: how they are cut, and that the way of writing them changes no bit.
#include <gtest/gtest.h>

#include <vector>

#include "ops/convolution/winograd/image_groups.h"
#include "ops/convolution/winograd/internal/normalised_images.h"
#include "ops/convolution/winograd/internal/ranges_ahead.h"
#include "ops/processor/processor.h"
#include "tests/support/evaluate.h"

namespace mox::test {
namespace {

using winograd::Problem;

Problem problem_of(int64_t batch, int64_t channels, int64_t side) {
  Problem p = {{.batch = batch,
                .in_channels = channels,
                .out_channels = channels,
                .in_height = side,
                .in_width = side,
                .out_height = side,
                .out_width = side}};
  p.before_y = p.before_x = 1;
  return p;
}

TEST(WinogradImageGroups, CoverTheBatchWithALastGroupThatMayBeSmaller) {
  const Problem p = problem_of(11, 32, 16);  // 16 tiles an image
  const winograd::ImageGroups groups{2, 32};
  EXPECT_EQ(groups.count(p), 6);
  EXPECT_EQ(groups.images_of(p, 0), 2);
  EXPECT_EQ(groups.images_of(p, 5), 1);
  EXPECT_EQ(groups.chunks(p), 1);
  EXPECT_EQ(groups.all_chunks(p), 6);
  const winograd::ImageGroups of_three{3, 32};  // 48 tiles: two chunks, of the last two images' 32 one
  EXPECT_EQ(of_three.count(p), 4);
  EXPECT_EQ(of_three.images_of(p, 3), 2);
  EXPECT_EQ(of_three.chunks(p), 2);
  EXPECT_EQ(of_three.all_chunks(p), 7);
}

Array zeros(const Shape& shape) {
  Array array(DType::kFloat32, shape);
  std::fill(array.values<float>().begin(), array.values<float>().end(), 0.0f);
  return array;
}

TEST(WinogradImageGroups, AreTheSameBitsAroundTheCaches) {
  Problem p = problem_of(3, 16, 18);
  p.lanes = processor().lanes;
  const int64_t chunk = 32;
  const winograd::Kernels& kernels = winograd::kernels_of(p);
  const Array x = random_array({p.batch * p.in_channels * p.in_height * p.in_width}, 1);
  const Array filters = random_array({p.out_channels * p.in_channels * 9}, 2);
  Array u = zeros({p.points() * p.filter_stride()});
  kernels.transform_filter(p, filters.values<float>().data(), u.values<float>().data(), 0, p.in_channels);
  std::vector<Array> results;
  for (const bool streams : {false, true}) {
    Array y = zeros(x.shape()),
          scratch = zeros({2 * p.points() * winograd::point_stride(chunk * p.in_channels)});
    const winograd::MemoryRange next{x.values<float>().data(), x.elements()};
    winograd::RangesAhead ahead(std::span(&next, 1), winograd::fetches_of_correlation(p, chunk));
    kernels.correlate_images(p, x.values<float>().data(), u.values<float>().data(), y.values<float>().data(),
                             streams, {}, ahead, chunk, scratch.values<float>().data());
    results.push_back(y);
  }
  Array by_tiles = zeros(x.shape()),
        scratch = zeros({2 * p.points() * winograd::point_stride(36 * p.in_channels)});
  kernels.correlate(p, x.values<float>().data(), u.values<float>().data(), nullptr,
                    by_tiles.values<float>().data(), {}, 0, p.tiles(), 36, scratch.values<float>().data());
  expect_close(results[0], by_tiles, 0, 0);
  expect_close(results[1], by_tiles, 0, 0);
}

TEST(WinogradImageGroups, AreCopiedWhole) {
  const Problem p = problem_of(3, 16, 7);
  const Array from = random_array({p.batch * p.in_channels * p.in_height * p.in_width}, 1);
  Array to = zeros(from.shape());
  winograd::stream(p, from.values<float>().data(), to.values<float>().data());
  expect_close(to, from, 0, 0);
}

}  // namespace
}  // namespace mox::test
