#include "moxing/engine/session/internal/training/best_values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "runtime/base/error.h"

namespace mox::internal {
namespace {

// Short names without numbers: their values take much more memory than their text.
TEST(BestValues, ManyOfShortNamesAreReadAgain) {
  for (const double value : {std::nan(""), 37.0}) {
    BestValues values;
    for (int i = 0; i < 2'000; ++i) values.add("f" + std::to_string(i), value, std::nullopt, i);
    BestValues again;
    again.from_json(values.to_json());
    EXPECT_EQ(again.summaries().size(), 2'000u);
    EXPECT_EQ(again.to_json(), values.to_json());
  }
}

TEST(BestValues, GoOnWithWhatWasRead) {
  constexpr auto kLarger = metrics::Direction::kLargerIsBetter;
  BestValues before, values;
  for (const char* name : {"a", "b"}) before.add(name, 2, kLarger, 1);
  values.from_json(before.to_json());
  values.add("b", 3, kLarger, 2);
  values.add("c", 1, kLarger, 2);
  values.add("a", 1, kLarger, 3);
  ASSERT_EQ(values.summaries().size(), 3u);
  EXPECT_EQ(values.summaries()[0].last, 1);
  EXPECT_EQ(values.summaries()[0].best_step, 1);
  EXPECT_EQ(values.summaries()[1].name, "b");
  EXPECT_EQ(values.summaries()[1].best_step, 2);
  EXPECT_EQ(values.summaries()[2].name, "c");
}

TEST(BestValues, WhatNoRunSavesIsRefused) {
  for (const char* text :
       {"", "[", "]", "[]]", "[,]", "{}", "null", "5", "[5]", "[{\"name\":\"a\"},]", "[{\"name\":1}]",
        "[{\"name\":\"a\"} {\"name\":\"b\"}]", "[{\"name\":\"a\",\"best\":1,\"best_step\":-1}]"})
    EXPECT_THROW(BestValues().from_json(text), DataError) << text;
  BestValues none;
  none.from_json(" [ ] ");
  EXPECT_TRUE(none.summaries().empty());
}

}  // namespace
}  // namespace mox::internal
