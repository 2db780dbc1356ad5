// What a pipeline keeps of the samples that went through it.
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>

#include "runtime/base/error.h"
#include "tests/runtime/data/pipeline_testing.h"
#include "tests/support/limited_addresses.h"
#include "tests/support/sanitizers.h"
#include "tests/support/without_privileges.h"

namespace mox {
namespace {

using namespace data_testing;

// Where a stream's samples are in memory of their own, that goes when the batch has a copy of them.
TEST(Memory, SamplesOfAStreamGoWhenTheirBatchIsMade) {
  auto alive = std::make_shared<std::atomic<int>>(0);
  const Dataset counted = Dataset::from_generator(kScalar, [alive]() -> Generator {
    return [alive](Element* element) {
      ++*alive;
      std::shared_ptr<std::byte> memory(new std::byte[sizeof(int32_t)](), [alive](std::byte* p) {
        --*alive;
        delete[] p;
      });
      *element = {Array(kScalar[0], std::move(memory))};
      return true;
    };
  });
  for (const int64_t ranks : {1, 2}) {
    Pipeline pipeline(counted.batch(4), {.threads = 0, .group_size = ranks});
    Batch batch;
    ASSERT_TRUE(pipeline.next(&batch));
    EXPECT_EQ(*alive, 0) << ranks;
  }
}

// Rows of 64 KiB in memory of the pool, which are filtered.
Dataset filtered_rows(int32_t count) {
  const auto wide = [](const SampleContext&, const Element& e, std::span<Array> row) {
    row[0].values<int32_t>()[0] = value_of(e);
  };
  return numbers(count).map_into({{DType::kInt32, Shape{16 << 10}}}, wide).filter([](const Element&) {
    return true;
  });
}

// Else the caches and batches of other pipelines had nothing where a window needs next to nothing.
TEST(Memory, AShuffleThatCanDoWithPlacesLeavesAQuarterOfTheBudget) {
  const auto budget = std::make_shared<MemoryBudget>(100 * (64 << 10));
  Pipeline first(filtered_rows(90).shuffle(90).batch(1), {.threads = 0, .memory_budget = budget});
  Batch batch;
  ASSERT_TRUE(first.next(&batch));
  const Dataset cached = Dataset::from_arrays({Array(DType::kInt32, {20, 16 << 10})}).cache().batch(1);
  EXPECT_NO_THROW(Pipeline(cached, {.threads = 0, .memory_budget = budget}));
}

TEST(Memory, AShuffleGivesBackTheMemoryOfTheSamplesThatItLetsGo) {
  constexpr int32_t kRows = 600, kRowBytes = 64 << 10;
  const auto in_use = [] {
    const struct mallinfo2 info = ::mallinfo2();
    return info.uordblks + info.hblkhd;
  };
  const size_t before = in_use();
  Pipeline pipeline(filtered_rows(kRows).shuffle(kRows).batch(1),
                    {.threads = 0, .memory_budget_bytes = size_t{400} * kRowBytes});
  Batch batch;
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(pipeline.next(&batch));
  EXPECT_LT(in_use(), before + size_t{100} * kRowBytes) << "a chunk of the filter's, batches, and places";
}

TEST(Memory, AFilterLooksAheadByFewLargeElements) {
  auto made = std::make_shared<std::atomic<int>>(0);
  const auto large = [made](const SampleContext&, const Element& e, std::span<Array> row) {
    ++*made;
    row[0].values<int32_t>()[0] = value_of(e);
  };
  const Dataset dataset =
      numbers(7).map_into({{DType::kInt32, Shape{6 << 20}}}, large).filter([](const Element& e) {
        return value_of(e) != 3;
      });
  Pipeline pipeline(dataset.batch(1), {.threads = 0});
  Batch batch;
  for (const int32_t expected : {0, 1, 2, 4, 5, 6}) {
    ASSERT_TRUE(pipeline.next(&batch));
    EXPECT_EQ(value_of(batch.components), expected);
    EXPECT_LE(*made, expected + 2) << "64 MiB are two of 24";
  }
  EXPECT_FALSE(pipeline.next(&batch));
}

TEST(Memory, WhatAFilterLooksAheadAndTheSamplesOfABatchCount) {
  constexpr size_t kRow = 64 << 10;
  const auto budget = std::make_shared<MemoryBudget>(200 * kRow);
  const PipelineOptions options{.threads = 2, .prefetch_batches = 4, .memory_budget = budget};
  {
    const Pipeline unfiltered(Dataset::from_arrays({Array(DType::kInt32, {20, 16 << 10})}).batch(2), options);
    EXPECT_EQ(budget->room_for_batches(0), (200 - 6 * 2) * kRow);
  }
  Pipeline pipeline(filtered_rows(90).batch(2), options);
  EXPECT_EQ(budget->room_for_batches(0), (200 - 64 - 6 * 4) * kRow);
  for (Batch batch; pipeline.next(&batch);) continue;
  EXPECT_EQ(budget->room_for_batches(0), (200 - 6 * 4) * kRow) << "there is nothing ahead";
}

// Of the process, as it is (VmRSS) or was at its height since clear_refs was written to (VmHWM).
size_t resident(std::string_view which) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(which)) return std::stoull(line.substr(which.size() + 1)) << 10;
  return 0;
}

// Neither of the small samples that were let go, which malloc keeps, nor of a window that grows by copies.
TEST(Memory, AShuffleOfPlacesTakesWhatTheBudgetSays) {
  if (kReservesAddressSpace)
    GTEST_SKIP() << "needs a build without sanitizers, which keep what is given back";
  constexpr size_t kBudget = size_t{64} << 20;
  constexpr int32_t kCount = 2'000'000;  // places of 32 bytes
  const Dataset kept = numbers(kCount).filter([](const Element&) { return true; });
  std::ofstream("/proc/self/clear_refs") << "5";
  const size_t before = resident("VmRSS:");
  ASSERT_GT(before, 0U);
  {
    Pipeline pipeline(kept.shuffle(kCount).batch(100), {.threads = 0, .memory_budget_bytes = kBudget});
    Batch batch;
    ASSERT_TRUE(pipeline.next(&batch));
  }
  EXPECT_LT(resident("VmHWM:"), before + kBudget + (size_t{12} << 20)) << "and the numbers";
}

// Of small elements most is what is around their values.
TEST(Memory, ACacheOfSmallElementsTakesWhatTheBudgetSays) {
  if (kReservesAddressSpace)
    GTEST_SKIP() << "needs a build without sanitizers, which keep what is given back";
  constexpr size_t kBudget = size_t{32} << 20;
  const Dataset endless = Dataset::from_generator(kScalar, []() -> Generator {
    return [](Element* element) {
      *element = {Array::scalar<int32_t>(1)};
      return true;
    };
  });
  std::ofstream("/proc/self/clear_refs") << "5";
  const size_t before = resident("VmRSS:");
  ASSERT_GT(before, 0U);
  for (const bool shuffles : {false, true}) {
    const Dataset some = endless.take(1'000'000);
    Pipeline pipeline((shuffles ? some.shuffle(1'000'000) : some.cache()).batch(100),
                      {.threads = 0, .memory_budget_bytes = kBudget});
    Batch batch;
    const auto all = [&] {
      while (pipeline.next(&batch)) continue;
    };
    EXPECT_THROW(all(), FailedPrecondition);
    EXPECT_LT(resident("VmHWM:"), before + kBudget + (size_t{8} << 20)) << shuffles;
  }
}

// Elements of 64 MiB, within the budget and beyond what the system gives.
std::string message_of_large_elements(const std::function<Dataset(const Dataset&)>& with) {
  return message_without_privileges<OutOfMemory>([&] {
    const auto nothing = [](const SampleContext&, const Element&, std::span<Array>) {};
    const Dataset batches = with(numbers(4).map_into({{DType::kInt32, Shape{16 << 20}}}, nothing)).batch(2);
    limit_addresses(32 << 20);
    Pipeline pipeline(batches, {.threads = 0, .memory_budget_bytes = size_t{1} << 40});
    Batch batch;
    pipeline.next(&batch);
  });
}

TEST(Memory, ThatIsRefusedToABatchIsNamed) {
  if (kReservesAddressSpace)
    GTEST_SKIP() << "needs a build without sanitizers, which want more address space than a limit leaves";
  EXPECT_THAT(message_of_large_elements([](const Dataset& data) { return data; }),
              testing::ContainsRegex("what the data set .* makes for a batch of 134217728 bytes takes more "
                                     "memory than there is: an array takes 134217728 bytes of memory, .*; "
                                     "use a smaller batch_size, .*memory_budget_bytes"));
  // By a function of the program.
  const auto large = [](const SampleContext&, const Element& e) -> Element {
    return {e[0], Array(DType::kFloat32, {1 << 26})};
  };
  EXPECT_THAT(message_of_large_elements([&](const Dataset& data) {
                return data.map({{DType::kInt32, Shape{16 << 20}}, {DType::kFloat32, {1 << 26}}}, large);
              }),
              testing::ContainsRegex("makes for a batch of .* takes more memory than there is: .*; use a "
                                     "smaller batch_size"));
}

TEST(Memory, ThatIsRefusedToACacheIsNamed) {
  if (kReservesAddressSpace)
    GTEST_SKIP() << "needs a build without sanitizers, which want more address space than a limit leaves";
  EXPECT_THAT(message_of_large_elements([](const Dataset& data) { return data.cache(); }),
              testing::ContainsRegex("cache .data/memory_test.cc:[0-9]+.: the cache of 4 elements takes more "
                                     "memory than there is: .* takes 268435456 bytes of memory, .*; cache "
                                     "before what makes the elements large"));
}

}  // namespace
}  // namespace mox
