// mox help: every name of the pages answers, and with what the page says.
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include "moxing/cli/internal/reference.h"

namespace mox::cli {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr ReferencePage kPages[] = {
    {"reference/things.md",
     "# Things\n\nHeader [`things.h`](x).\n\n## `Box`, `Chest`\n\nHolds a \\* b, 0 \\< n.\n\n```cpp\nclass "
     "Box;\n```\n\n"
     "## `Box::open`\n\nOpens it.\n\n## `layers::Options`\n\n- `depth`: `int`, `3`. How deep.\n"},
    {"table.md",
     "# Rules\n\n| Name | Rule | Default |\n|---|---|---|\n| `adam`, `adamw` | m \\| v | `beta1` 0.9 |\n"}};

TEST(Help, FindsDeclarationsFieldsAndRows) {
  EXPECT_EQ(reference_of("Chest", kPages),
            "Box, Chest  (Things)\n\n  Holds a * b, 0 < n.\n\n      class Box;\n");
  EXPECT_EQ(reference_of("open", kPages), "Box::open  (Things)\n\n  Opens it.\n");
  EXPECT_EQ(reference_of("mox::Box::open", kPages), reference_of("open", kPages));
  EXPECT_EQ(reference_of("depth", kPages),
            "layers::Options::depth  (Things)\n  - depth: int, 3. How deep.\n");
  EXPECT_EQ(reference_of("Options::depth", kPages), reference_of("depth", kPages));
  EXPECT_EQ(reference_of("adamw", kPages),
            "adam, adamw  (docs/table.md)\n  Rule: m | v\n  Default: beta1 0.9\n");
  for (const char* name : {"", "x", "pen", "ox", "Things"}) EXPECT_EQ(reference_of(name, kPages), "") << name;
}

TEST(Help, KnowsEachKindOfName) {
  const auto answer = [](const char* name) { return reference_of(name, reference_pages()); };
  EXPECT_THAT(answer("relu"),
              AllOf(StartsWith("relu  (Activation functions)"), HasSubstr("Tensor relu(const Tensor& x);")));
  EXPECT_THAT(answer("dense"), HasSubstr("Variables: kernel [in,"));
  EXPECT_THAT(answer("shuffle"), HasSubstr("Dataset shuffle(int64_t buffer_size) const;"));
  EXPECT_THAT(answer("roc_auc"), HasSubstr("receiver operating characteristic"));
  EXPECT_THAT(answer("early_stopping_hook"), HasSubstr("(Hooks)"));
  EXPECT_THAT(answer("cosine_decay"), HasSubstr("(Schedules)"));
  EXPECT_THAT(answer("adam"), HasSubstr("(docs/optimizers.md)"));
  EXPECT_THAT(answer("resnet_v1_50"), HasSubstr("(docs/zoo.md)"));
  EXPECT_THAT(answer("batch_size"), AllOf(HasSubstr("RunSpec::batch_size"), HasSubstr("Default: 32")));
  EXPECT_THAT(answer("label_smoothing"), HasSubstr("CrossEntropyOptions::label_smoothing"));
}

TEST(Help, EveryNameAnswersWithoutMarks) {
  const std::vector<std::string> names = reference_names(reference_pages());
  EXPECT_GT(names.size(), 400U);
  EXPECT_THAT(names, Contains("Dataset::shuffle"));
  for (const std::string& name : names) {
    const std::string text = reference_of(name, reference_pages());
    EXPECT_THAT(text, Not(testing::IsEmpty())) << name;
    EXPECT_THAT(text, Not(HasSubstr("```"))) << name;
  }
}

}  // namespace
}  // namespace mox::cli
