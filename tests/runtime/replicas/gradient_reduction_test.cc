#include "runtime/replicas/gradient_reduction.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <mutex>
#include <ostream>
#include <thread>

#include "runtime/base/random.h"
#include "runtime/replicas/lane_threads.h"

namespace mox::internal {
namespace {

constexpr int64_t kElements = 9000;

// What replica `leaf` computes in `step`: numbers of very different size, so that every order of a sum has
// other last bits.
std::vector<float> leaf_values(int64_t leaf, int step) {
  std::vector<float> values(kElements);
  RandomStream(3, static_cast<uint64_t>(leaf * 100 + step)).fill_normal(values, 0, 0, 1);
  for (float& value : values) value *= std::exp(4 * value);
  return values;
}

std::vector<float> expected_sum(LeafRange node, int step) {
  if (node.size() == 1) return leaf_values(node.first, step);
  const int64_t split = split_of(node);
  std::vector<float> left = expected_sum({node.first, split}, step);
  const std::vector<float> right = expected_sum({split, node.last}, step);
  for (size_t i = 0; i < left.size(); ++i) left[i] += right[i];
  return left;
}

struct Case {
  int64_t replicas;
  int ranks, lanes;
  int64_t bucket_elements, range_elements = 0;

  std::string name() const {
    return "Replicas" + std::to_string(replicas) + "Ranks" + std::to_string(ranks) + "Lanes" +
           std::to_string(lanes) + "Bucket" + std::to_string(bucket_elements) + "Range" +
           std::to_string(range_elements);
  }
};

void PrintTo(const Case& c, std::ostream* stream) { *stream << c.name(); }

class GradientReductions : public testing::TestWithParam<Case> {};

// Three gradients of a block, two steps.
void reduce_as_rank(const Case& c, Communicator& communicator) {
  const Placement placement{.rank = communicator.rank(),
                            .ranks = c.ranks,
                            .devices = 1,
                            .logical_replicas = c.replicas,
                            .lanes = c.lanes};
  const std::vector<BlockPart> parts = {{0, 5000}, {5008, 10}, {5024, 3976}};
  std::vector<float> sums(kElements);
  std::mutex mutex;
  int64_t delivered = 0;  // elements
  GradientReduction reduction(placement, communicator, parts, kElements,
                              {.first_bucket_elements = c.bucket_elements,
                               .bucket_elements = c.bucket_elements,
                               .range_elements = c.range_elements},
                              [&](size_t index, int64_t first, std::span<float> sum) {
                                std::lock_guard lock(mutex);
                                delivered += static_cast<int64_t>(sum.size());
                                std::ranges::copy(sum, sums.begin() + parts[index].offset + first);
                              });
  const Team team(1);
  LaneThreads lanes(c.lanes, team);
  std::vector<std::vector<float>> blocks(static_cast<size_t>(c.lanes), std::vector<float>(kElements));
  for (int step = 0; step < 2; ++step) {
    reduction.begin_step();
    lanes.run([&](int lane) {
      std::vector<float>& block = blocks[lane];
      for (int64_t nth = 0; nth < placement.replicas_per_lane(); ++nth) {
        block = leaf_values(placement.replicas_of(lane).first + nth, step);
        for (const size_t index : {0, 2, 1}) reduction.add(lane, nth, index, block);
      }
      reduction.finish_lane(lane);
    });
    reduction.finish();
    EXPECT_EQ(delivered, (5000 + 10 + 3976) * (step + 1));
    const std::vector<float> expected = expected_sum({0, c.replicas}, step);
    for (const BlockPart& part : parts)
      for (int64_t i = part.offset; i < part.offset + part.elements; ++i)
        ASSERT_EQ(std::bit_cast<uint32_t>(sums[i]), std::bit_cast<uint32_t>(expected[i]));
  }
}

TEST_P(GradientReductions, GiveTheBitsOfTheTreeWhoeverComputesWhat) {
  const Case& c = GetParam();
  auto transports = make_thread_transports(c.ranks);
  std::vector<std::thread> threads;
  threads.reserve(transports.size());
  for (auto& transport : transports)
    threads.emplace_back([&c, &transport] {
      Communicator communicator(std::move(transport));
      reduce_as_rank(c, communicator);
      communicator.barrier();
    });
  for (std::thread& thread : threads) thread.join();
}

INSTANTIATE_TEST_SUITE_P(Placements, GradientReductions,
                         testing::Values(Case{1, 1, 1, 0}, Case{4, 1, 1, 0}, Case{4, 1, 2, 0},
                                         Case{4, 1, 4, 0}, Case{7, 1, 1, 0}, Case{6, 1, 2, 0},
                                         Case{4, 2, 1, 100}, Case{4, 2, 2, 100000}, Case{4, 4, 1, 6000},
                                         Case{12, 2, 2, 0}, Case{12, 2, 1, 100}, Case{6, 3, 2, 100},
                                         Case{10, 2, 1, 0}, Case{4, 1, 2, 0, 512}, Case{12, 1, 4, 0, 100},
                                         Case{12, 1, 2, 9000, 1000}),
                         [](const auto& info) { return info.param.name(); });

class LanesThatAreNotAlike : public testing::Test {
 protected:
  LanesThatAreNotAlike() { reduction_.begin_step(); }
  void add(int lane, size_t index) { reduction_.add(lane, 0, index, blocks_[lane]); }

  Communicator alone_;
  std::vector<std::vector<float>> blocks_ = {std::vector<float>(30, 1), std::vector<float>(30, 2)};
  std::mutex mutex_;
  std::vector<size_t> delivered_;
  bool fails_ = false;
  GradientReduction reduction_{Placement{.devices = 2, .logical_replicas = 2, .lanes = 2},
                               alone_,
                               {{0, 10}, {10, 10}, {20, 10}},
                               30,
                               {},
                               [this](size_t index, int64_t, std::span<float> sum) {
                                 EXPECT_THAT(sum, testing::Each(3.0F));
                                 if (fails_) throw std::runtime_error("cannot take it");
                                 const std::lock_guard lock(mutex_);
                                 delivered_.push_back(index);
                               }};
};

TEST_F(LanesThatAreNotAlike, TheOneAheadDeliversWhatTheOtherCompletes) {
  add(0, 0);
  add(1, 0);
  EXPECT_THAT(delivered_, testing::IsEmpty());
  add(0, 1);
  EXPECT_THAT(delivered_, testing::ElementsAre(0));
  add(0, 2);
  std::thread ahead([&] { reduction_.finish_lane(0); });
  add(1, 1);
  add(1, 2);
  reduction_.finish_lane(1);
  ahead.join();
  EXPECT_THAT(delivered_, testing::UnorderedElementsAre(0, 1, 2));
}

TEST_F(LanesThatAreNotAlike, MayFailWhileTheyFinish) {
  add(0, 0);
  add(1, 0);
  fails_ = true;
  EXPECT_THROW(reduction_.finish_lane(1), std::runtime_error);
  reduction_.abandon_lane(1);  // it has left already, and is not counted again
  fails_ = false;
  reduction_.finish_lane(0);
  // Nothing of it is left in the next step.
  blocks_[0].assign(30, 1);
  reduction_.begin_step();
  add(0, 0);
  add(1, 0);
  add(0, 1);
  EXPECT_THAT(delivered_, testing::ElementsAre(0));
}

TEST_F(LanesThatAreNotAlike, DoNotWaitForOneThatHasFailed) {
  add(0, 0);
  reduction_.abandon_lane(0);
  add(1, 0);
  add(1, 1);
  reduction_.finish_lane(1);
  EXPECT_THAT(delivered_, testing::ElementsAre(0));
}

TEST(LaneThreads, RethrowTheExceptionOfTheLowestLaneAndGoOn) {
  const Team team(1);
  LaneThreads lanes(3, team);
  EXPECT_THROW(lanes.run([](int lane) {
    if (lane == 1) throw std::runtime_error("one");
    if (lane == 2) throw std::logic_error("two");
  }),
               std::runtime_error);
  std::vector<int> seen(3, 0);
  lanes.run([&](int lane) { seen[lane] = lane + 1; });
  EXPECT_THAT(seen, testing::ElementsAre(1, 2, 3));
}

TEST(GradientReductionBuckets, ShrinkTowardsTheEnd) {
  std::vector<BlockPart> parts;
  for (int64_t i = 0; i < 32; ++i) parts.push_back({i * 1000, 1000});
  Communicator alone;
  const GradientReduction reduction(Placement{}, alone, parts, 32000,
                                    {.first_bucket_elements = 4000, .bucket_elements = 10000},
                                    [](size_t, int64_t, std::span<float>) {});
  std::vector<int64_t> sizes;
  for (size_t b = 0; b < reduction.buckets(); ++b) sizes.push_back(reduction.bucket_elements(b));
  EXPECT_EQ(sizes, (std::vector<int64_t>{4000, 10000, 9000, 5000, 2000, 1000, 1000}));
}

}  // namespace
}  // namespace mox::internal
