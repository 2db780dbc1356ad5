// What a pipeline keeps of the samples that went through it.
#include <gtest/gtest.h>

#include "tests/runtime/data/pipeline_testing.h"

namespace mox {
namespace {

using namespace data_testing;

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

}  // namespace
}  // namespace mox
