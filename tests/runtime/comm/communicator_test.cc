#include "runtime/comm/communicator.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <numeric>
#include <ostream>

#include "runtime/base/error.h"
#include "runtime/base/random.h"
#include "runtime/comm/allgather_values.h"
#include "tests/runtime/comm/thread_ranks.h"

namespace mox {
namespace {

TEST(Communicator, OneRankIsAJobOfItsOwn) {
  Communicator communicator;
  EXPECT_EQ(communicator.size(), 1);
  EXPECT_EQ(communicator.local_size(), 1);
  communicator.barrier();
  EXPECT_THAT(communicator.allgather("abc"), testing::ElementsAre("abc"));
  EXPECT_EQ(communicator.broadcast_text("abc"), "abc");
  std::vector<float> values = {1, 2};
  communicator.allreduce(std::span(values));
  EXPECT_THAT(values, testing::ElementsAre(1, 2));
  EXPECT_THROW(communicator.broadcast({}, 1), InvalidArgument);
}

class CommunicatorOfRanks : public testing::TestWithParam<int> {};

TEST(Communicator, KnowsItsHosts) {
  auto transports = make_thread_transports(4);
  std::vector<std::thread> threads;
  threads.reserve(transports.size());
  for (int rank = 0; rank < 4; ++rank)
    threads.emplace_back([&, rank] {
      Communicator communicator(std::move(transports[rank]), rank % 2 == 0 ? "even" : "odd");
      EXPECT_EQ(communicator.local_size(), 2);
      EXPECT_EQ(communicator.local_rank(), rank / 2);
      EXPECT_EQ(communicator.host(3), "odd");
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Communicator, TellsMachinesOfOneNameApart) {
  auto transports = make_thread_transports(4);
  std::vector<std::thread> threads;
  threads.reserve(transports.size());
  for (int rank = 0; rank < 4; ++rank)
    threads.emplace_back([&, rank] {
      Communicator communicator(std::move(transports[rank]), "ubuntu", rank < 2 ? "first" : "second");
      EXPECT_EQ(communicator.local_size(), 2);
      EXPECT_EQ(communicator.local_rank(), rank % 2);
      EXPECT_EQ(communicator.host(rank), "ubuntu");
    });
  for (std::thread& thread : threads) thread.join();
}

// The two ranks of the second machine pass theirs while one of the first is not there yet.
TEST(Communicator, ABarrierOfAMachineWaitsForItsRanksAlone) {
  auto transports = make_thread_transports(5);
  std::vector<std::thread> threads;
  threads.reserve(transports.size());
  std::atomic<int> second_passed{0};
  std::atomic<bool> late_is_here{false};
  for (int rank = 0; rank < 5; ++rank)
    threads.emplace_back([&, rank] {
      Communicator communicator(std::move(transports[rank]), rank % 2 == 0 ? "first" : "second");
      if (rank == 0) {
        while (second_passed.load() < 2) std::this_thread::yield();
        late_is_here = true;
      }
      communicator.local_barrier();
      if (rank % 2 == 0) {
        EXPECT_TRUE(late_is_here.load());
      } else {
        ++second_passed;
      }
      communicator.barrier();
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_P(CommunicatorOfRanks, ABarrierHoldsAllUntilTheLastIsThere) {
  std::atomic<int> arrived{0};
  run_ranks(GetParam(), [&](Communicator& communicator) {
    for (int round = 1; round <= 20; ++round) {
      ++arrived;
      communicator.barrier();
      EXPECT_GE(arrived.load(), round * communicator.size());
      communicator.barrier();
    }
  });
}

TEST_P(CommunicatorOfRanks, BroadcastsFromAnyRoot) {
  run_ranks(GetParam(), [&](Communicator& communicator) {
    for (int root = 0; root < communicator.size(); ++root) {
      const std::string text = "from " + std::to_string(root) + std::string(1000, 'x');
      EXPECT_EQ(communicator.broadcast_text(communicator.rank() == root ? text : "", root), text);
    }
  });
}

TEST_P(CommunicatorOfRanks, GathersTextsOfDifferentLengths) {
  run_ranks(GetParam(), [&](Communicator& communicator) {
    const auto gathered = communicator.allgather(std::string(static_cast<size_t>(communicator.rank()), 'a'));
    for (size_t r = 0; r < gathered.size(); ++r) EXPECT_EQ(gathered[r].size(), r);
  });
}

TEST_P(CommunicatorOfRanks, SumsExactTypes) {
  run_ranks(GetParam(), [&](Communicator& communicator) {
    const int n = communicator.size();
    std::vector<int64_t> whole = {communicator.rank(), 1};
    communicator.allreduce(std::span(whole));
    EXPECT_THAT(whole, testing::ElementsAre(n * (n - 1) / 2, n));
    std::vector<double> real = {0.5};
    communicator.allreduce(std::span(real));
    EXPECT_EQ(real[0], 0.5 * n);
  });
}

TEST_P(CommunicatorOfRanks, GathersNumbersOfOneLength) {
  run_ranks(GetParam(), [&](Communicator& communicator) {
    const std::vector<double> own = {0.5, 1.0 * communicator.rank()};
    const auto gathered = allgather_equal_values(communicator, own);
    ASSERT_EQ(std::ssize(gathered), communicator.size());
    for (int r = 0; r < communicator.size(); ++r) EXPECT_THAT(gathered[r], testing::ElementsAre(0.5, r));
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, CommunicatorOfRanks, testing::Values(1, 2, 3, 4, 7, 8));

// The values of one leaf: numbers of very different size, so that every order of a sum has other last bits.
std::vector<float> leaf_values(int64_t leaf, int64_t elements) {
  std::vector<float> values(static_cast<size_t>(elements));
  RandomStream(7, static_cast<uint64_t>(leaf)).fill_normal(values, 0, 0, 1);
  for (float& value : values) value *= std::exp(4 * value);
  return values;
}

// What the tree over leaves [first, last) sums to, written down from the tree's definition.
std::vector<float> expected_sum(LeafRange node, int64_t elements) {
  if (node.size() == 1) return leaf_values(node.first, elements);
  const int64_t split = split_of(node);
  std::vector<float> left = expected_sum({node.first, split}, elements);
  const std::vector<float> right = expected_sum({split, node.last}, elements);
  for (size_t i = 0; i < left.size(); ++i) left[i] += right[i];
  return left;
}

void run_tree_sum(Communicator& communicator, int64_t leaves, int64_t elements, WireType wire,
                  std::vector<float>* result) {
  std::vector<std::vector<float>> arrays;
  for (const LeafRange& subtree :
       maximal_subtrees(leaves, block_of(leaves, communicator.rank(), communicator.size())))
    arrays.push_back(expected_sum(subtree, elements));
  TreeSum sum{.leaves = leaves,
              .elements = elements,
              .partial_sums = {},
              .result = arrays[0].data(),
              .wire = wire,
              .tag = 20};
  for (auto& array : arrays) sum.partial_sums.push_back(array.data());
  bool done = false;
  communicator.wait(communicator.start(make_tree_sum(sum), "bucket 0", [&] { done = true; }));
  EXPECT_TRUE(done);
  *result = arrays[0];
}

struct Case {
  int ranks;
  int64_t leaves;

  std::string name() const { return "Ranks" + std::to_string(ranks) + "Leaves" + std::to_string(leaves); }
};

void PrintTo(const Case& c, std::ostream* stream) { *stream << c.name(); }

class TreeSums : public testing::TestWithParam<Case> {};

TEST_P(TreeSums, HaveTheBitsOfTheTreeOnEveryRank) {
  for (const int64_t elements : {1, 5, 2048, 2049, 10007, 32768, 32769, 50021}) {
    const std::vector<float> expected = expected_sum({0, GetParam().leaves}, elements);
    run_ranks(GetParam().ranks, [&](Communicator& communicator) {
      std::vector<float> result;
      run_tree_sum(communicator, GetParam().leaves, elements, WireType::kFloat32, &result);
      for (size_t i = 0; i < expected.size(); ++i)
        ASSERT_EQ(std::bit_cast<uint32_t>(result[i]), std::bit_cast<uint32_t>(expected[i]))
            << "element " << i;
    });
  }
}

// Long enough for several chunks.
TEST(TreeSum, HandsOutEachRangeOnceItIsFinal) {
  for (const int64_t elements : {100, 1'300'001}) {
    const std::vector<float> expected = expected_sum({0, 2}, elements);
    run_ranks(2, [&](Communicator& communicator) {
      std::vector<float> values = leaf_values(communicator.rank(), elements);
      std::vector<int> seen(values.size());
      int calls = 0;
      const auto arrived = [&](std::span<float> range) {
        ++calls;
        for (const float& value : range) {
          const auto i = static_cast<size_t>(&value - values.data());
          ++seen[i];
          ASSERT_EQ(std::bit_cast<uint32_t>(value), std::bit_cast<uint32_t>(expected[i]));
        }
      };
      communicator.wait(communicator.start(make_tree_sum({.leaves = 2,
                                                          .elements = elements,
                                                          .partial_sums = {values.data()},
                                                          .result = values.data(),
                                                          .arrived = arrived}),
                                           "sum"));
      EXPECT_THAT(seen, testing::Each(1));
      EXPECT_EQ(calls, elements == 100 ? 1 : 3);
    });
  }
}

// Where a second phase would save no bytes, or few, the ranks wait for each other once.
TEST(TreeSum, OfAShortArrayHasOnePhase) {
  EXPECT_EQ(tree_sum_messages(2048, 8), 7);
  EXPECT_EQ(tree_sum_messages(2049, 8), 14);
  EXPECT_EQ(tree_sum_messages(32768, 2), 1);
  EXPECT_EQ(tree_sum_messages(32769, 2), 2);
}

TEST(TreeSum, SendsAsManyMessagesAsItSays) {
  for (const int64_t elements : {100, 5000, 40000, 1'300'001})
    for (const int ranks : {1, 2, 3}) {
      run_ranks(ranks, [&](Communicator& communicator) {
        std::vector<float> values(static_cast<size_t>(elements), 1.0F);
        std::atomic<bool> done = false;
        const int64_t before = communicator.work().messages_sent;
        // Not `wait`, which would do the work itself.
        communicator.start(make_tree_sum({.leaves = ranks,
                                          .elements = elements,
                                          .partial_sums = {values.data()},
                                          .result = values.data()}),
                           "sum", [&] { done = true; });
        const auto sent = [&] { return communicator.work().messages_sent - before; };
        while (!done || sent() < tree_sum_messages(elements, ranks)) std::this_thread::yield();
        EXPECT_EQ(sent(), tree_sum_messages(elements, ranks));
      });
    }
}

// Nor does a value depend on how many phases the sum has.
TEST_P(TreeSums, OverANarrowWireAgreeOnEveryRank) {
  const int64_t leaves = GetParam().leaves;
  std::vector<float> shorter;
  for (const int64_t elements : {1000, 5000, 40000}) {
    const std::vector<float> exact = expected_sum({0, leaves}, elements);
    std::vector<double> magnitude(exact.size());
    for (int64_t leaf = 0; leaf < leaves; ++leaf) {
      const auto values = leaf_values(leaf, elements);
      for (size_t i = 0; i < values.size(); ++i) magnitude[i] += std::abs(values[i]);
    }
    std::vector<std::vector<float>> results(static_cast<size_t>(GetParam().ranks));
    run_ranks(GetParam().ranks, [&](Communicator& communicator) {
      run_tree_sum(communicator, leaves, elements, WireType::kBFloat16, &results[communicator.rank()]);
    });
    for (const auto& result : results) {
      EXPECT_EQ(result, results[0]);
      EXPECT_TRUE(std::ranges::equal(shorter, std::span(result).first(shorter.size())));
      // Every partial sum is rounded once, by at most 2^-9 of itself, and so is the result.
      for (size_t i = 0; i < exact.size(); ++i)
        ASSERT_NEAR(result[i], exact[i], magnitude[i] * std::ldexp(1.0, -7));
    }
    shorter = results[0];
  }
}

INSTANTIATE_TEST_SUITE_P(Placements, TreeSums,
                         testing::Values(Case{1, 1}, Case{1, 4}, Case{2, 2}, Case{2, 4}, Case{4, 4},
                                         Case{2, 6}, Case{3, 6}, Case{6, 6}, Case{3, 3}, Case{5, 10},
                                         Case{8, 8}),
                         [](const auto& info) { return info.param.name(); });

TEST(Communicator, ManyOperationsAreUnderWayAtOnceInAnyOrder) {
  constexpr int kOperations = 12;
  run_ranks(3, [&](Communicator& communicator) {
    std::vector<std::vector<float>> values(kOperations, std::vector<float>(3000, 1.0F));
    std::vector<std::shared_ptr<Communicator::Pending>> pending;
    for (int i = 0; i < kOperations; ++i) {
      // Each rank begins with another one.
      const int k = (i + communicator.rank() * 5) % kOperations;
      float* data = values[k].data();
      pending.push_back(communicator.start(make_tree_sum({.leaves = 3,
                                                          .elements = 3000,
                                                          .partial_sums = {data},
                                                          .result = data,
                                                          .tag = kFirstFreeTag + k}),
                                           "bucket"));
    }
    for (const auto& one : pending) communicator.wait(one);
    for (const auto& array : values) EXPECT_THAT(array, testing::Each(3.0F));
  });
}

TEST(Communicator, AFailureOfDoneComesOutOfWait) {
  run_ranks(2, [&](Communicator& communicator) {
    float value = 1;
    auto pending = communicator.start(
        make_tree_sum({.leaves = 2, .elements = 1, .partial_sums = {&value}, .result = &value, .tag = 17}),
        "bucket", [] { throw NumericError("not finite"); });
    EXPECT_THROW(communicator.wait(pending), NumericError);
  });
}

// One message after another, from each of `ranks`; or one to rank 0.
class MessagesInTurn : public Operation {
 public:
  explicit MessagesInTurn(std::vector<int> ranks) : ranks_(std::move(ranks)) {}
  bool advance(Transport& transport, std::vector<Transport::Request>& requests) override {
    if (next_ == ranks_.size()) return false;
    const auto data = std::as_writable_bytes(std::span(&value_, 1));
    const int rank = ranks_[next_++];
    requests = {rank == 0 ? transport.send(0, kFirstFreeTag, data)
                          : transport.receive(rank, kFirstFreeTag, data)};
    return true;
  }

 private:
  std::vector<int> ranks_;
  size_t next_ = 0;
  float value_ = 0;
};

TEST(Communicator, AWaitIsCountedSinceTheOperationLastWentOn) {
  constexpr int kReports = 10;  // a tenth of a second each
  std::atomic<int> for_rank_1{0}, for_rank_2{0};
  std::atomic<double> longest{0}, first_of_the_next{0};
  run_ranks(3, [&](Communicator& communicator) {
    const int rank = communicator.rank();
    if (rank == 0)
      communicator.set_stall_listener(
          [&](const std::string& what, std::span<const int> missing, double seconds) {
            if (what != "messages") return;
            if (missing[0] == 1) longest = seconds, ++for_rank_1;
            if (missing[0] == 2 && for_rank_2++ == 0) first_of_the_next = seconds;
          });
    while (rank == 1 && for_rank_1 < kReports) std::this_thread::yield();
    while (rank == 2 && for_rank_2 == 0) std::this_thread::yield();
    const auto pending = communicator.start(
        std::make_unique<MessagesInTurn>(rank == 0 ? std::vector{1, 2} : std::vector{0}), "messages");
    communicator.wait(pending);
    communicator.set_stall_listener({});
  });
  EXPECT_LT(first_of_the_next, longest);
}

TEST(Communicator, AWaitForAMissingRankIsReported) {
  std::atomic<bool> reported{false};
  run_ranks(3, [&](Communicator& communicator) {
    if (communicator.rank() == 0)
      communicator.set_stall_listener(
          [&](const std::string& what, std::span<const int> missing, double seconds) {
            EXPECT_EQ(what, "allgather");
            EXPECT_GT(seconds, 0);
            // On a busy machine rank 1 may be late, too.
            if (missing.size() == 1 && missing[0] == 2) reported = true;
          });
    if (communicator.rank() == 2)
      while (!reported) std::this_thread::yield();
    communicator.allgather_equal("x");
    communicator.set_stall_listener({});
  });
  EXPECT_TRUE(reported);
}

}  // namespace
}  // namespace mox
