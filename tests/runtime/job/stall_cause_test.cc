#include "runtime/job/internal/stall_cause.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "runtime/job/internal/rank_connections.h"
#include "runtime/job/internal/rank_watch.h"
#include "runtime/job/internal/watch_message.h"
#include "tests/runtime/comm/thread_ranks.h"

namespace mox::internal {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsSupersetOf;

RankStatus waiting(std::vector<int> missing, std::string operation = "bucket 0") {
  return {.answers = true,
          .step = 7,
          .doing = "",
          .waits_in = std::move(operation),
          .missing = std::move(missing)};
}
RankStatus busy() { return {.answers = true, .step = 7, .doing = "", .waits_in = "", .missing = {}}; }
RankStatus silent() { return {}; }

TEST(StallCause, IsWhoIsWaitedForDirectly) {
  const std::vector<RankStatus> statuses = {waiting({2}), waiting({2}), silent(), waiting({2})};
  EXPECT_THAT(find_stall_cause(statuses, 1).ranks, ElementsAre(2));
  EXPECT_EQ(find_stall_cause(statuses, 1).waiter, 1);
}

TEST(StallCause, IsAtTheEndOfTheChainAndNotWhoWaitsItself) {
  // Rank 1 waits for rank 0, which waits for rank 3 in another operation, which waits for rank 2.
  const std::vector<RankStatus> statuses = {waiting({3}, "barrier"), waiting({0}, "allgather"), busy(),
                                            waiting({2}, "bucket 5")};
  const StallCause cause = find_stall_cause(statuses, 1);
  EXPECT_THAT(cause.ranks, ElementsAre(2));
  EXPECT_EQ(cause.waiter, 3);
  EXPECT_THAT(cause.circle, IsEmpty());
}

TEST(StallCause, IsWhoDoesNotAnswerRatherThanWhoIsBusy) {
  const std::vector<RankStatus> statuses = {busy(), waiting({0, 2}), silent()};
  EXPECT_THAT(find_stall_cause(statuses, 1).ranks, ElementsAre(2));
}

TEST(StallCause, AreAllWhoAreBusy) {
  const std::vector<RankStatus> statuses = {waiting({1, 2}), busy(), busy()};
  EXPECT_THAT(find_stall_cause(statuses, 0).ranks, ElementsAre(1, 2));
}

TEST(StallCause, IsACircleWhereAllWaitForEachOther) {
  const std::vector<RankStatus> statuses = {waiting({1}), waiting({0}), waiting({0})};
  const StallCause cause = find_stall_cause(statuses, 0);
  EXPECT_THAT(cause.ranks, IsEmpty());
  EXPECT_THAT(cause.circle, ElementsAre(0, 1));
}

TEST(StallCause, IsRankZeroWhereItDoesNotAnswer) {
  const std::vector<RankStatus> statuses = {silent(), waiting({2}), silent()};
  EXPECT_THAT(find_stall_cause(statuses, 1).ranks, ElementsAre(0));
}

TEST(StallCause, OneOfThoseWhoWaitSpeaks) {
  const std::vector<RankStatus> statuses = {busy(), waiting({0}), waiting({1})};
  EXPECT_EQ(speaker(statuses, 2), 1);
}

TEST(RankStatus, GoesThroughALine) {
  RankStatus status{.answers = true,
                    .step = 12,
                    .doing = "saving a checkpoint",
                    .waits_in = "bucket 3",
                    .missing = {1, 30}};
  const RankStatus read = RankStatus::from_line(status.to_line(), 31);
  EXPECT_TRUE(read.answers);
  EXPECT_EQ(read.step, 12);
  EXPECT_EQ(read.doing, status.doing);
  EXPECT_EQ(read.waits_in, status.waits_in);
  EXPECT_EQ(read.missing, status.missing);
  EXPECT_FALSE(RankStatus::from_line(status.to_line(), 30).answers);
  EXPECT_THAT(RankStatus::from_line("1\ta\tb\t1 3-5 7", 8).missing, ElementsAre(1, 3, 4, 5, 7));
  for (const char* text : {"", "x", "1\ta\tb", "1\ta\tb\t1 x", "1\ta\tb\t1\t2", "99999999999999999999\t\t\t",
                           "1\ta\tb\t-1", "1\ta\tb\t8", "1\ta\tb\t3-8", "1\ta\tb\t5-3", "1\ta\tb\t3-3",
                           "1\ta\tb\t3-", "1\ta\tb\t3-5 5", "1\ta\tb\t3 2", "1\ta\tb\t1-2-3"})
    EXPECT_FALSE(RankStatus::from_line(text, 8).answers) << text;
}

TEST(RankStatus, ThoseOfAllRanksGoThroughALine) {
  const std::string lines[] = {waiting({1}).to_line(), "", busy().to_line()};
  const auto read = parse_statuses(statuses_line(lines), 3);
  ASSERT_EQ(read.size(), 3U);
  EXPECT_THAT(read[0].missing, ElementsAre(1));
  EXPECT_FALSE(read[1].answers);
  EXPECT_TRUE(read[2].answers);
  // Of more ranks than there are, and of fewer.
  EXPECT_EQ(parse_statuses(std::string(100'000, '\f'), 3).size(), 3U);
  EXPECT_FALSE(parse_statuses("", 2)[1].answers);
}

// Else the question who holds the job up would end it.
TEST(RankStatus, OfThousandsOfRanksThatMissThousandsOneMessageIsEnough) {
  constexpr int kRanks = 2048;
  for (const bool are_neighbours : {true, false}) {
    const auto is_slow = [&](int rank) { return are_neighbours ? rank >= kRanks / 2 : rank % 2 == 1; };
    std::vector<int> slow;
    for (int rank = 0; rank < kRanks; ++rank)
      if (is_slow(rank)) slow.push_back(rank);
    std::vector<std::string> lines;
    for (int rank = 0; rank < kRanks; ++rank)
      lines.push_back((is_slow(rank) ? busy() : waiting(slow, "the gradients of bucket 117")).to_line());
    const std::string line = statuses_line(lines);
    EXPECT_LT(line.size(), kLongestMessage / 2);
    std::vector<RankStatus> statuses = parse_statuses(line, kRanks);
    if (are_neighbours) {
      EXPECT_EQ(find_stall_cause(statuses, 0).ranks, slow);
    }
    EXPECT_THAT(find_stall_cause(statuses, 0).ranks, IsSupersetOf({slow[0], slow[1]}));
    statuses[0].missing = slow;  // who asks knows its own
    EXPECT_EQ(find_stall_cause(statuses, 0).ranks, slow);
  }
}

// Ranks as threads, each with a watch; `body` gets both.
void run_watched_ranks(int size, const std::function<void(Communicator&, RankWatch&)>& body) {
  run_ranks(size, [&](Communicator& communicator) {
    const std::vector<std::string> names(static_cast<size_t>(size), "rank of a host");
    std::vector<RankConnection> connections;
    if (communicator.rank() == 0) {
      const RankListener listener = listen_for_ranks();
      communicator.broadcast_text(listener.invitation);
      connections = accept_ranks(listener, names, std::chrono::minutes(1));
    } else {
      connections = {connect_to_rank_0(communicator.broadcast_text(""), communicator.rank(), true)};
    }
    RankWatch watch(connections, communicator.rank(), names);
    body(communicator, watch);
    watch.leave();
  });
}

RankStatus status_of(const Communicator& communicator, const RankWatch& watch) {
  RankStatus status{.answers = true, .step = watch.step(), .doing = "", .waits_in = "", .missing = {}};
  if (const auto wait = communicator.longest_wait()) {
    status.waits_in = wait->what;
    status.missing = wait->missing;
  }
  return status;
}

// In the second round of a barrier rank 1 waits for rank 3, which waits for rank 2 in the first one.
TEST(RanksThatAskEachOther, FindTheOneThatHoldsUpAllThoughItIsNotTheOneTheyWaitFor) {
  for (const bool answers : {true, false}) {
    std::atomic<int> named{-1}, waited_for{-1};
    std::atomic<bool> over{false};
    run_watched_ranks(4, [&](Communicator& communicator, RankWatch& watch) {
      const int rank = communicator.rank();
      watch.set_status([&, rank] {
        while (rank == 2 && !answers && !over) std::this_thread::sleep_for(std::chrono::milliseconds(5));
        return status_of(communicator, watch);
      });
      communicator.barrier();
      if (rank == 1)
        communicator.set_stall_listener(
            [&](const std::string&, std::span<const int> missing, double seconds) {
              if (seconds < 0.5 || over || missing.size() != 1 || missing[0] != 3) return;
              const std::vector<RankStatus> statuses = watch.ask_all();
              EXPECT_EQ(statuses[2].answers, answers);
              const StallCause cause = find_stall_cause(statuses, 1);
              if (cause.ranks.size() != 1) return;  // on a busy machine another one may have only just come
              waited_for = missing[0];
              named = cause.ranks[0];
              over = true;
            });
      if (rank == 2)
        while (!over) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      communicator.barrier();
      communicator.set_stall_listener({});
    });
    EXPECT_EQ(waited_for, 3);
    EXPECT_EQ(named, 2);
  }
}

// Rank 0 waits in one operation for rank 2, which computes (or saves); rank 1 waits for rank 0
// in another one.
TEST(RanksThatAskEachOther, FindTheOneThatComputesBehindAnotherOperation) {
  std::atomic<int> named{-1};
  std::atomic<bool> over{false};
  run_watched_ranks(3, [&](Communicator& communicator, RankWatch& watch) {
    const int rank = communicator.rank();
    watch.set_status([&] { return status_of(communicator, watch); });
    communicator.barrier();
    if (rank == 1)
      communicator.set_stall_listener([&](const std::string& what, std::span<const int>, double seconds) {
        if (seconds < 0.5 || over || what != "broadcast") return;
        const StallCause cause = find_stall_cause(watch.ask_all(), 1);
        if (cause.ranks.size() != 1 || cause.waiter != 0) return;
        named = cause.ranks[0];
        over = true;
      });
    if (rank == 2)
      while (!over) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    float value = 1;
    auto sum = communicator.start(
        make_tree_sum({.leaves = 3, .elements = 1, .partial_sums = {&value}, .result = &value, .tag = 17}),
        "bucket 0");
    if (rank == 0) communicator.wait(sum);
    communicator.broadcast_text("all the same");
    communicator.wait(sum);
    communicator.set_stall_listener({});
  });
  EXPECT_EQ(named, 2);
}

}  // namespace
}  // namespace mox::internal
