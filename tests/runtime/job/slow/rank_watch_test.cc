#include "runtime/job/internal/rank_watch.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "runtime/job/internal/rank_connections.h"
#include "runtime/job/job.h"

namespace mox::internal {
namespace {

// Comes as rank 1, and then receives nothing any more, not even on its kernel's behalf: as if its host had
// lost its power.
void come_and_fall_silent(const std::string& invitation) {
  const int connection = connect_to_rank_0(invitation, 1, true).socket;
  sock_filter nothing = {.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = 0};
  const sock_fprog filter = {.len = 1, .filter = &nothing};
  if (setsockopt(connection, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) != 0) std::exit(2);
}

void watch_a_host_that_falls_silent(bool is_asked) {
  alarm(60);  // the test fails then
  const RankListener listener = listen_for_ranks();
  std::thread other(come_and_fall_silent, listener.invitation);
  const std::vector<std::string> names = {"rank 0 (host host)", "rank 1 (host lost)"};
  RankWatch watch(accept_ranks(listener, names, std::chrono::minutes(1)), 0, names);
  other.join();
  if (is_asked) watch.ask_all();
  for (;;) pause();
}

TEST(RankWatchDeathTest, LosesAHostThatFallsSilent) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto failed = testing::ExitedWithCode(kJobFailed);
  EXPECT_EXIT(watch_a_host_that_falls_silent(false), failed, "rank 1 .host lost. was lost");
}

// Then what was written stays unacknowledged, for which the kernel has another patience.
TEST(RankWatchDeathTest, LosesAHostThatFallsSilentBeforeItIsAsked) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto failed = testing::ExitedWithCode(kJobFailed);
  EXPECT_EXIT(watch_a_host_that_falls_silent(true), failed, "rank 1 .host lost. was lost");
}

// What it has sent before may come later than the word that it has left, for which a job was ended.
TEST(RankWatch, ARankThatHasLeftIsGoneSomeTimeLater) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const std::vector<std::string> names = {"rank 0", "rank 1"};
  const RankConnection of_first{.socket = ends[0], .key = "key"}, of_second{.socket = ends[1], .key = "key"};
  RankWatch first({&of_first, 1}, 0, names), second({&of_second, 1}, 1, names);
  const auto begin = std::chrono::steady_clock::now();
  std::thread leaving([&] { second.leave(); });
  std::chrono::duration<double> passed{};
  while (!first.is_gone(1) && passed.count() < 60) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    passed = std::chrono::steady_clock::now() - begin;
  }
  EXPECT_GE(passed.count(), 4);
  EXPECT_LT(passed.count(), 60);
  EXPECT_FALSE(first.is_gone(0));
  first.leave();
  leaving.join();
}

}  // namespace
}  // namespace mox::internal
