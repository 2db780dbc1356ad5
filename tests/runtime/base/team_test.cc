#include "runtime/base/team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace mox {
namespace {

TEST(Team, ParallelForVisitsEveryElementOnce) {
  for (int threads : {1, 2, 3}) {
    Team team(threads);
    for (int64_t count : {0, 1, 2, 100, 1001}) {
      std::vector<int> visits(static_cast<size_t>(count));
      team.parallel_for(count, 10, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++visits[i];
      });
      for (int v : visits) EXPECT_EQ(v, 1);
    }
  }
}

TEST(Team, ParallelForBackwardsVisitsEveryElementOnceAndEachThreadsLastFirst) {
  for (int threads : {1, 2, 3}) {
    std::vector<int> visits(1001);
    Team(threads).parallel_for_backwards(1001, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++visits[i];
    });
    for (int v : visits) EXPECT_EQ(v, 1);
  }
  // The calling thread has the first half; the other one waits until it has begun.
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<int64_t> first_begin = -1;
  Team(2).parallel_for_backwards(320, 10, [&](int64_t begin, int64_t) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    int64_t none = -1;
    if (std::this_thread::get_id() == caller) first_begin.compare_exchange_strong(none, begin);
    while (first_begin < 0 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  });
  EXPECT_EQ(first_begin, 150);
}

TEST(Team, WhatABodyThrowsIsThrownWhenAllAreThrough) {
  for (const int threads : {1, 2, 3}) {
    const Team team(threads);
    for (const int64_t wrong : {0, 500, 1000}) {
      std::atomic<int64_t> visited = 0;
      const auto visit = [&] {
        team.parallel_for(1001, 1, [&](int64_t begin, int64_t end) {
          if (begin <= wrong && wrong < end) throw std::out_of_range("element " + std::to_string(wrong));
          visited += end - begin;
        });
      };
      try {
        visit();
        ADD_FAILURE() << "nothing was thrown";
      } catch (const std::out_of_range& error) {
        EXPECT_EQ(error.what(), "element " + std::to_string(wrong));
      }
      const int64_t then = visited;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      EXPECT_EQ(visited, then);
    }
    EXPECT_THROW(team.on_each_thread([] { throw 42; }), int);
    int64_t visited = 0;
    team.parallel_for(10, 10, [&](int64_t begin, int64_t end) { visited += end - begin; });
    EXPECT_EQ(visited, 10) << "the team goes on";
  }
}

TEST(Team, AThreadThatIsHeldUpHoldsUpNobody) {
  // Whoever has the first piece does not give it back before all others are done.
  std::atomic<int> done = 0;
  bool others_were_done = false;
  const auto hold_up = [&](int64_t begin, int64_t end) {
    if (begin == 0) {
      const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
      while (done + (end - begin) < 320 && std::chrono::steady_clock::now() < until)
        std::this_thread::yield();
      others_were_done = done + (end - begin) == 320;
    }
    done += static_cast<int>(end - begin);
  };
  Team(2).parallel_for(320, 10, hold_up);
  EXPECT_TRUE(others_were_done);
  EXPECT_EQ(done, 320);
}

TEST(Team, CallsAtTheSameTimeHaveDifferentThreads) {
  for (int threads : {1, 2, 3}) {
    std::vector<std::atomic<int>> inside(static_cast<size_t>(threads));
    std::atomic<int> visited = 0, shared = 0, outside = 0;
    Team(threads).parallel_for_by_thread(999, 1, [&](int thread, int64_t begin, int64_t end) {
      if (thread < 0 || thread >= threads) {
        ++outside;
        return;
      }
      if (inside[thread]++ > 0) ++shared;
      std::this_thread::yield();
      visited += static_cast<int>(end - begin);
      --inside[thread];
    });
    EXPECT_EQ(visited, 999);
    EXPECT_EQ(shared, 0);
    EXPECT_EQ(outside, 0);
  }
}

TEST(Team, RunsOnceOnEachThread) {
  std::mutex mutex;
  std::multiset<std::thread::id> seen;
  Team(3).on_each_thread([&] {
    const std::lock_guard lock(mutex);
    seen.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(seen.size(), 3u);
  EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), 3u);
}

// Of memory for each piece, or for each thread, a body needs no more than the less of the two.
TEST(Team, ThreadsAreNumberedBelowThePieces) {
  const Team team(16);
  std::atomic<int> largest{0};
  for (int i = 0; i < 1'000; ++i)
    team.parallel_for_by_thread(9, 1, [&](int thread, int64_t, int64_t) {
      int seen = largest.load();
      while (seen < thread && !largest.compare_exchange_weak(seen, thread)) {
      }
    });
  EXPECT_LT(largest.load(), 9);
}

// libgomp sends home what a smaller team does not need, and ends the process where it then gets no new one.
TEST(Team, KeepsItsThreadsWhereThereIsLessToDo) {
  const Team team(4);
  const auto threads = [&] {
    std::mutex mutex;
    std::set<std::thread::id> numbers;
    team.on_each_thread([&] {
      const std::lock_guard lock(mutex);
      numbers.insert(std::this_thread::get_id());
    });
    return numbers;
  };
  const std::set<std::thread::id> before = threads();
  ASSERT_EQ(before.size(), 4u);
  for (int i = 0; i < 20; ++i) team.parallel_for(2, 1, [](int64_t, int64_t) {});
  EXPECT_EQ(threads(), before);
}

TEST(Team, ChunkBordersDoNotDependOnTheNumberOfThreads) {
  std::vector<std::pair<int64_t, int64_t>> borders[2];
  for (int threads : {1, 2}) {
    auto& seen = borders[threads - 1];
    seen.resize(4);
    Team(threads).parallel_chunks(100, 30, [&](int64_t index, int64_t begin, int64_t end) {
      seen[index] = {begin, end};
    });
  }
  EXPECT_EQ(borders[0], borders[1]);
  EXPECT_EQ(borders[0].back(), (std::pair<int64_t, int64_t>{90, 100}));
}

TEST(Team, IsEnteredForAWhile) {
  const Team outer(2), inner(3);
  const EnteredTeam in_outer(outer);
  EXPECT_EQ(entered_threads(), 2);
  {
    const EnteredTeam in_inner(inner);
    EXPECT_EQ(entered_threads(), 3);
  }
  EXPECT_EQ(entered_threads(), 2);
}

}  // namespace
}  // namespace mox
