#include "runtime/replicas/lane_threads.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <latch>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

#include "runtime/base/error.h"
#include "tests/moxing/small_run.h"
#include "tests/support/sanitizers.h"

namespace mox::internal {
namespace {

std::vector<int> cores_of_this_thread() {
  cpu_set_t mask;
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &mask)) cores.push_back(core);
  return cores;
}

std::vector<int> cores_of_new_thread() {
  std::vector<int> cores;
  std::thread([&] { cores = cores_of_this_thread(); }).join();
  return cores;
}

void bind_this_thread(const std::vector<int>& cores) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const int core : cores) CPU_SET(core, &mask);
  ASSERT_EQ(sched_setaffinity(0, sizeof mask, &mask), 0);
}

// Tests may narrow the cores of their thread.
class LaneThreadsTest : public testing::Test {
 protected:
  ~LaneThreadsTest() override { bind_this_thread(allowed_); }

  // The cores of each lane in its body.
  static std::vector<std::vector<int>> cores_of(LaneThreads& lanes) {
    std::vector<std::vector<int>> cores(static_cast<size_t>(lanes.size()));
    lanes.run([&](int lane) { cores[lane] = cores_of_this_thread(); });
    return cores;
  }

  const std::vector<int> allowed_ = cores_of_this_thread();
};

TEST_F(LaneThreadsTest, EachHasCoresOfItsOwnWhileItRuns) {
  if (allowed_.size() < 2) GTEST_SKIP() << "needs 2 cores";
  const Team team(1);
  LaneThreads lanes(2, team);
  const std::vector<std::vector<int>> expected = {{allowed_[0]}, {allowed_[1]}};
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(cores_of(lanes), expected);
    EXPECT_EQ(cores_of_this_thread(), allowed_);
    EXPECT_EQ(cores_of_new_thread(), allowed_) << "a helper would compete with lane 0 alone";
  }
}

TEST_F(LaneThreadsTest, OneAloneMayUseAllCores) {
  const Team team(1);
  LaneThreads lane(1, team);
  EXPECT_EQ(cores_of(lane)[0], allowed_);
}

TEST_F(LaneThreadsTest, OfFewerCoresThanThreadsNoneIsBound) {
  const Team team(1);
  LaneThreads many(static_cast<int>(allowed_.size()) + 1, team);
  for (const auto& cores : cores_of(many)) EXPECT_EQ(cores, allowed_);

  const Team wide(static_cast<int>(allowed_.size()));
  const EnteredTeam entered(wide);
  LaneThreads two(2, wide);
  for (const auto& cores : cores_of(two)) EXPECT_EQ(cores, allowed_);
}

TEST_F(LaneThreadsTest, UseTheCoresThatTheCallerHas) {
  bind_this_thread({allowed_.back()});
  const Team team(1);
  LaneThreads lanes(2, team);
  for (const auto& cores : cores_of(lanes)) EXPECT_EQ(cores, std::vector{allowed_.back()});
  EXPECT_EQ(cores_of_this_thread(), std::vector{allowed_.back()});
}

TEST_F(LaneThreadsTest, TheCallerHasItsCoresBackAfterAnException) {
  if (allowed_.size() < 2) GTEST_SKIP() << "needs 2 cores";
  const Team team(1);
  LaneThreads lanes(2, team);
  EXPECT_THROW(lanes.run([](int lane) {
    if (lane == 0) throw std::runtime_error("lane 0");
  }),
               std::runtime_error);
  EXPECT_EQ(cores_of_this_thread(), allowed_);
}

// The threads of the caller's team compute for lane 0 meanwhile.
TEST_F(LaneThreadsTest, ATeamIsBoundWithItsLaneAndFreeAfterwards) {
  if (allowed_.size() < 4) GTEST_SKIP() << "needs 4 cores";
  const Team team(2);
  const EnteredTeam entered(team);
  const auto all_within = [&](const std::vector<int>& cores) {
    std::atomic<bool> good = true;
    team.parallel_for(2, 1, [&](int64_t, int64_t) {
      if (cores_of_this_thread() != cores) good = false;
    });
    return good.load();
  };
  {
    LaneThreads lanes(2, team);
    std::atomic<int> good = 0;
    lanes.run([&](int lane) {
      const auto first = allowed_.begin() + 2 * lane;
      if (all_within({first, first + 2})) ++good;
    });
    EXPECT_EQ(good, 2);
  }
  EXPECT_TRUE(all_within(allowed_));
}

// What the system has refused leaves no thread behind.
TEST(LaneThreadsDeathTest, ThatCannotBeStartedAreAnError) {
  if (kReservesAddressSpace)
    GTEST_SKIP() << "needs a build without sanitizers, which want more address space than a limit leaves";
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto start_too_many = [](int lanes, int threads) {
    // Room for the stacks of a few threads.
    pthread_attr_t attributes;
    size_t stack_bytes = 0, pages = 0;
    pthread_getattr_default_np(&attributes);
    pthread_attr_getstacksize(&attributes, &stack_bytes);
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t limit = pages * static_cast<size_t>(sysconf(_SC_PAGESIZE)) + 4 * stack_bytes;
    const rlimit room = {limit, limit};
    if (setrlimit(RLIMIT_AS, &room) != 0) std::exit(2);
    try {
      const LaneThreads started(lanes, Team(threads));
    } catch (const FailedPrecondition& error) {
      std::fputs(error.what(), stderr);
      std::exit(0);
    }
    std::exit(3);
  };
  EXPECT_EXIT(start_too_many(64, 1), testing::ExitedWithCode(0),
              "the 64 lanes of a process need a thread each, .*ulimit");
  EXPECT_EXIT(start_too_many(1, 64), testing::ExitedWithCode(0),
              "63 threads compute beside the first, .*ulimit.*threads");
}

// The team's threads are there before anybody else can take what the system allows: libgomp would end the
// process. For a user of its own, whose only processes are the test's.
TEST(LaneThreadsDeathTest, ATeamHasItsThreadsBeforeOthersTakeThem) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root, to be another user";
  if (kReservesAddressSpace)
    GTEST_SKIP() << "needs a build without sanitizers, which have threads of their own";
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto compute_within_two_threads = [] {
    const uid_t user = 1'000'000 + ::getpid();
    const rlimit two = {2, 2};
    if (setrlimit(RLIMIT_NPROC, &two) != 0 || ::setresuid(user, user, user) != 0) std::exit(2);
    const Team team(2);
    const EnteredTeam entered(team);
    LaneThreads lanes(1, team);
    bool is_refused = false;
    std::latch done(1);
    std::thread other;
    try {
      other = std::thread([&] { done.wait(); });
    } catch (const std::system_error&) {
      is_refused = true;
    }
    std::atomic<int> computed = 0;
    lanes.run([&](int) { team.on_each_thread([&] { ++computed; }); });
    done.count_down();
    if (other.joinable()) other.join();
    std::exit(is_refused && computed == 2 ? 0 : 3);
  };
  EXPECT_EXIT(compute_within_two_threads(), testing::ExitedWithCode(0), "");
}

// The first one's threads are the next one's, or have ended: the limit fits as well as before.
TEST(LaneThreadsDeathTest, AreThereAgainUnderALimitThatJustFits) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root, to be another user";
  if (kReservesAddressSpace)
    GTEST_SKIP() << "needs a build without sanitizers, which have threads of their own";
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto compute_again_and_again = [](int lane_count, int size) {
    const uid_t user = 1'000'000 + ::getpid();
    const rlim_t threads = lane_count * size;
    const rlimit just_enough = {threads, threads};
    if (setrlimit(RLIMIT_NPROC, &just_enough) != 0 || ::setresuid(user, user, user) != 0) std::exit(2);
    try {
      for (int i = 0; i < 20; ++i) {
        const Team team(i % 3 == 1 ? 2 : size);
        const EnteredTeam entered(team);
        LaneThreads lanes(lane_count, team);
        std::atomic<int> computed = 0;
        lanes.run([&](int) { team.on_each_thread([&] { ++computed; }); });
        if (computed != lane_count * team.size()) std::exit(3);
      }
    } catch (const FailedPrecondition& error) {
      std::fputs(error.what(), stderr);
      std::exit(4);
    }
    std::exit(0);
  };
  EXPECT_EXIT(compute_again_and_again(1, 2), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(compute_again_and_again(1, 4), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(compute_again_and_again(2, 2), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(compute_again_and_again(3, 4), testing::ExitedWithCode(0), "");
}

class CoresOfARun : public SmallRun {};

TEST_F(CoresOfARun, AreThoseOfTheCallerInHooksAndAfterIt) {
  const ScopedConfiguration devices({"--threads=2", "--num_devices=2", "--log_level=error"});
  const std::vector<int> before = cores_of_this_thread();
  int steps = 0;
  auto s = spec();
  s.hooks.push_back(after_run_hook([&](Session&, const StepResult&) {
    ++steps;
    EXPECT_EQ(cores_of_this_thread(), before);
  }));
  run_or_throw(s);
  EXPECT_EQ(steps, 4);
  EXPECT_EQ(cores_of_this_thread(), before);
}

}  // namespace
}  // namespace mox::internal
