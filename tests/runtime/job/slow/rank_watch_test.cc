#include "runtime/job/internal/rank_watch.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <thread>

#include "runtime/job/job.h"

namespace mox::internal {
namespace {

// Comes as rank 1, and then receives nothing any more, not even on its kernel's behalf: as if its host had
// lost its power.
void come_and_fall_silent(const std::string& invitation) {
  std::istringstream words(invitation);
  std::string secret;
  uint16_t port = 0;
  words >> secret >> port;
  const int connection = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const std::string greeting = secret + " 1\n";
  std::array<char, 8> welcome{};
  sock_filter nothing = {.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = 0};
  const sock_fprog filter = {.len = 1, .filter = &nothing};
  const bool good = ::connect(connection, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 &&
                    ::send(connection, greeting.data(), greeting.size(), 0) > 0 &&
                    ::recv(connection, welcome.data(), welcome.size(), MSG_WAITALL) ==
                        static_cast<ssize_t>(welcome.size()) &&
                    setsockopt(connection, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) == 0;
  if (!good) std::exit(2);
}

void watch_a_host_that_falls_silent(bool is_asked) {
  alarm(60);  // the test fails then
  const RankWatch::Listener listener = RankWatch::listen();
  std::thread other(come_and_fall_silent, listener.invitation);
  RankWatch watch(listener, {"host", "lost"});
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

}  // namespace
}  // namespace mox::internal
