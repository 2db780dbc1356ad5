#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <new>
#include <string>
#include <thread>

#include "runtime/base/error.h"
#include "runtime/refusals/out_of_memory.h"
#include "runtime/refusals/team_threads.h"
#include "runtime/tensor/array.h"
#include "tests/support/message_of.h"
#include "tests/support/sanitizers.h"

namespace mox::internal {
namespace {

// The error of what is made as a table.
template <typename Type>
std::string said_of_table(const std::function<void()>& make) {
  return message_of<Type>([&] {
    try {
      make();
    } catch (...) {
      rethrow_naming_memory([] { return "a table"; }, "read less of it");
    }
  });
}

TEST(Refusals, OfMemorySayWhatForAndWhatThereIs) {
  const std::string held =
      "the process holds [1-9][0-9]* MiB .[1-9][0-9]* MiB of addresses. of the [1-9][0-9]* MiB that it may "
      "have; read less of it";
  EXPECT_THAT(said_of_table<OutOfMemory>([] { throw std::bad_alloc(); }),
              testing::MatchesRegex("a table takes more memory than there is: " + held));
  EXPECT_THAT(said_of_table<OutOfMemory>([] { Array(DType::kInt64, {int64_t{1} << 50}); }),
              testing::MatchesRegex("a table takes more memory than there is: int64.1125899906842624.: an "
                                    "array takes 9007199254740992 bytes of memory, .*; " +
                                    held));
}

TEST(Refusals, ThatAreNamedAndOtherErrorsStayAsTheyAre) {
  EXPECT_EQ(said_of_table<OutOfMemory>([] { throw OutOfMemory("a chair: make it smaller"); }),
            "a chair: make it smaller");
  EXPECT_EQ(said_of_table<DataError>([] { throw DataError("damaged"); }), "damaged");
}

TEST(Refusals, AreNoneOfATeamThatIsThere) {
  int computed = 0;
  std::thread([&] {
    std::atomic<int> count = 0;
    for (const int size : {3, 1, 2, 3}) {
      const Team team(size);
      const EnteredTeam entered(team);
      start_team(team);
      start_team(team);
      team.on_each_thread([&] { ++count; });
    }
    computed = count;
  }).join();
  EXPECT_EQ(computed, 3 + 1 + 2 + 3);
}

// A smaller team has sent threads home: they are asked for anew.
TEST(RefusalsDeathTest, OfATeamsThreadsAreAnErrorAlsoAfterASmallerTeam) {
  if (kReservesAddressSpace)
    GTEST_SKIP() << "needs a build without sanitizers, which want more address space than a limit leaves";
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto start_too_many = [] {
    pthread_attr_t attributes;
    size_t stack_bytes = 0, pages = 0;
    pthread_getattr_default_np(&attributes);
    pthread_attr_getstacksize(&attributes, &stack_bytes);
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t limit = pages * static_cast<size_t>(sysconf(_SC_PAGESIZE)) + 4 * stack_bytes;
    const rlimit room = {limit, limit};
    if (setrlimit(RLIMIT_AS, &room) != 0) std::exit(2);
    try {
      start_team(Team(2));
      start_team(Team(64));
    } catch (const FailedPrecondition& error) {
      std::fputs(error.what(), stderr);
      std::exit(0);
    }
    std::exit(3);
  };
  EXPECT_EXIT(start_too_many(), testing::ExitedWithCode(0),
              "63 threads compute beside the first, .*ulimit.*threads");
}

}  // namespace
}  // namespace mox::internal
