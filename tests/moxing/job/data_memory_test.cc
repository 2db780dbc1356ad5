// The budget of a machine and a job, whatever the number of ranks, pipelines and containers.
#include "moxing/job/data_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <string>

#include "moxing/config/flags.h"
#include "moxing/config/init.h"
#include "runtime/base/error.h"
#include "runtime/data/pipeline.h"
#include "tests/support/sanitizers.h"
#include "tests/support/without_privileges.h"

namespace mox::internal {
namespace {

constexpr size_t kGiB = size_t{1} << 30;

TEST(DataMemory, OfAMachineIsDividedAmongItsRanks) {
  EXPECT_EQ(data_memory_of_rank(0, {.bytes = 16 * kGiB})->bytes(), 4 * kGiB);
  EXPECT_EQ(data_memory_of_rank(0, {.bytes = 16 * kGiB, .ranks = 4, .ranks_of_kernel = 4})->bytes(), kGiB);
  EXPECT_EQ(data_memory_of_rank(1024, {.bytes = 16 * kGiB, .ranks = 4, .ranks_of_kernel = 4})->bytes(),
            kGiB / 4);
}

TEST(DataMemory, OfAContainerIsAQuarterOfItsLimit) {
  const MachineMemory memory{.bytes = 64 * kGiB, .limit = 8 * kGiB, .ranks = 2, .ranks_of_kernel = 4};
  EXPECT_EQ(data_memory_of_rank(0, memory)->bytes(), kGiB);
  // Four containers whose limits together are more than the machine has.
  EXPECT_EQ(data_memory_of_rank(0, {.bytes = 16 * kGiB, .limit = 8 * kGiB, .ranks = 1, .ranks_of_kernel = 4})
                ->bytes(),
            kGiB);
}

// Each process has its own: nothing of it is another rank's.
TEST(DataMemory, OfAProcessUnderUlimitIsAQuarterOfThat) {
  const MachineMemory memory{
      .bytes = 64 * kGiB, .limit_of_process = 2 * kGiB, .ranks = 2, .ranks_of_kernel = 2};
  EXPECT_EQ(data_memory_of_rank(0, memory)->describe(),
            "536870912 bytes (a quarter of the 2147483648 bytes that ulimit lets this process have)");
  EXPECT_EQ(data_memory_of_rank(0, {.bytes = kGiB, .limit_of_process = 2 * kGiB})->bytes(), kGiB / 4);
  EXPECT_EQ(data_memory_of_rank(1024, memory)->bytes(), kGiB / 2) << "what is asked for is what counts";
}

TEST(DataMemory, HearsTheLimitsOfThisProcess) {
  if (kReservesAddressSpace)
    GTEST_SKIP() << "needs a build without sanitizers, which want more address space than a limit leaves";
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA}) {
    EXPECT_EQ(message_without_privileges<Error>([resource] {
                const rlimit limit{.rlim_cur = 1 << 30, .rlim_max = 1 << 30};
                ::setrlimit(resource, &limit);
                throw InvalidArgument(std::to_string(machine_memory_of_job().limit_of_process.value_or(0)) +
                                      " " + std::to_string(MemoryBudget::of_process()->bytes()));
              }),
              "1073741824 268435456");
  }
}

TEST(DataMemory, OfAllPipelinesOfAProcessIsOneBudget) {
  const auto budget = data_memory_of_rank(1, {.bytes = kGiB});  // 1 MiB
  const auto samples = [] { return Dataset::from_arrays({Array(DType::kFloat32, {160, 1024})}); };
  const Dataset training = samples().cache().batch(8), evaluation = samples().cache().batch(8);
  const Pipeline first(training, {.memory_budget = budget});
  // Each has room in it, both have not.
  try {
    const Pipeline second(evaluation, {.memory_budget = budget});
    FAIL() << "640 KiB twice are more than 1 MiB";
  } catch (const FailedPrecondition& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("655520 bytes or more beside 655520 bytes that other operations, "
                        "kept images and rows of .npy files hold"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("1048576 bytes (data_memory_mb is 1 for this machine); raise data_memory_mb"),
              std::string::npos)
        << text;
  }
  // The cache of a data set is one, however many pipelines read it.
  EXPECT_NO_THROW(Pipeline(training, {.memory_budget = budget}));
}

TEST(DataMemory, OfAConfigurationIsTheSameForAll) {
  const ScopedConfiguration configured({"--data_memory_mb=1"});
  const auto budget = data_memory_of_process();
  EXPECT_EQ(budget->bytes(), size_t{1} << 20);
  EXPECT_EQ(data_memory_of_process(), budget);
  set_flag("data_memory_mb", 2);
  EXPECT_EQ(data_memory_of_process()->bytes(), size_t{2} << 20) << "of the next run";
  const ScopedConfiguration unconfigured;
  EXPECT_THROW(data_memory_of_process(), FailedPrecondition);
}

TEST(DataMemory, ThatACacheHadIsGivenBackWithIt) {
  const auto budget = std::make_shared<MemoryBudget>(size_t{1} << 20);
  for (int i = 0; i < 3; ++i) {
    const Dataset samples = Dataset::from_arrays({Array(DType::kFloat32, {160, 1024})}).cache().batch(8);
    EXPECT_NO_THROW(Pipeline(samples, {.memory_budget = budget}));
  }
}

TEST(DataMemory, BatchesOfOnePipelineLeaveLessForThoseOfAnother) {
  const auto budget = std::make_shared<MemoryBudget>(10 * 8 * 4096);
  EXPECT_EQ(budget->room_for_batches(0), 10 * 8 * 4096U);
  const Dataset batches = Dataset::from_arrays({Array(DType::kFloat32, {64, 1024})}).batch(8);
  const Pipeline first(batches, {.threads = 2, .prefetch_batches = 4, .memory_budget = budget});
  EXPECT_EQ(budget->room_for_batches(0), 4 * 8 * 4096U);
}

// Elements of 4 KiB that a generator makes: they have no places in a file that could be kept instead.
Dataset made(int count) {
  return Dataset::from_generator({{DType::kFloat32, {1024}}}, [count]() -> Generator {
    return [count, i = 0](Element* element) mutable {
      if (i++ == count) return false;
      *element = {Array(DType::kFloat32, {1024})};
      return true;
    };
  });
}

TEST(DataMemory, OfAShuffledBufferCounts) {
  Pipeline small(made(1000).shuffle(100).batch(8),
                 {.memory_budget = std::make_shared<MemoryBudget>(size_t{1} << 20)});
  Batch batch;
  while (small.next(&batch)) continue;
  Pipeline large(made(1000).shuffle(500).batch(8),
                 {.memory_budget = std::make_shared<MemoryBudget>(size_t{1} << 20)});
  try {
    large.next(&batch);
    FAIL() << "500 elements of 4 KiB are more than 1 MiB";
  } catch (const FailedPrecondition& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("shuffle (job/data_memory_test.cc:"), std::string::npos) << text;
    EXPECT_NE(text.find("its buffer of 500 elements needs"), std::string::npos) << text;
    EXPECT_NE(text.find("raise memory_budget_bytes, or shuffle before"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace mox::internal
