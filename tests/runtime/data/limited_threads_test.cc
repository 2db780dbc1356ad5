// A pipeline where the system gives few threads: as many as it has before take part in the next one, and
// fewer are said.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <mutex>
#include <set>
#include <thread>

#include "runtime/data/pipeline.h"
#include "tests/runtime/data/pipeline_testing.h"
#include "tests/support/sanitizers.h"

namespace mox {
namespace {

using namespace data_testing;

// How many threads beside this one make the samples of a pipeline of two threads.
size_t makers_of_a_pipeline() {
  std::mutex mutex;
  std::set<pid_t> makers;
  const Dataset dataset = numbers(200).map(kScalar, [&](const SampleContext&, const Element& element) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::lock_guard lock(mutex);
    makers.insert(::gettid());
    return element;
  });
  Pipeline pipeline(dataset.batch(1), {.threads = 2});
  for (Batch batch; pipeline.next(&batch);) continue;
  makers.erase(::getpid());
  return makers.size();
}

// Of a user whose only processes are the test's.
void make_batches_within(rlim_t threads, size_t expected) {
  const uid_t user = 1'000'000 + ::getpid();
  const rlimit few = {threads, threads};
  if (setrlimit(RLIMIT_NPROC, &few) != 0 || ::setresuid(user, user, user) != 0) std::exit(2);
  for (int i = 0; i < 5; ++i)
    if (const size_t makers = makers_of_a_pipeline(); makers != expected) {
      std::fprintf(stderr, "%zu threads made the samples of pipeline %d", makers, i);
      std::exit(3);
    }
  std::exit(0);
}

class LimitedThreadsDeathTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::getuid() != 0) GTEST_SKIP() << "needs root, to be another user";
    if (kReservesAddressSpace)
      GTEST_SKIP() << "needs a build without sanitizers, which have threads of their own";
    if (std::thread::hardware_concurrency() < 2)
      GTEST_SKIP() << "needs 2 cores: on one, oneTBB has no thread";
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
};

// This thread, the pipeline's own and one of oneTBB's, which sleeps from one pipeline to the next.
TEST_F(LimitedThreadsDeathTest, ThatAreThereAreUsedAgain) {
  EXPECT_EXIT(make_batches_within(3, 2), testing::ExitedWithCode(0), "");
}

TEST_F(LimitedThreadsDeathTest, ThatAreRefusedAreSaid) {
  EXPECT_EXIT(
      make_batches_within(2, 1), testing::ExitedWithCode(0),
      "fewer than the 2 threads that were to prepare data: Resource temporarily unavailable.*data_threads");
}

}  // namespace
}  // namespace mox
