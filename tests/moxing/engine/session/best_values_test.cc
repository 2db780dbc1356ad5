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
