// Data of the same names, number and types, but other contents.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "runtime/data/content_sample.h"
#include "runtime/data/pipeline.h"
#include "tests/support/message_of.h"

namespace mox {
namespace {

using testing::HasSubstr;

Dataset counting(float first, int64_t changed = -1) {
  Array x(DType::kFloat32, {1000, 3});
  for (int64_t i = 0; i < 1000; ++i)
    for (int64_t c = 0; c < 3; ++c)
      x.values<float>()[3 * i + c] = first + static_cast<float>(i) + (i == changed ? 0.5F : 0);
  return Dataset::from_arrays({x}).shuffle(100).repeat().batch(10);
}

TEST(ContentSample, TellsOtherContentsApart) {
  EXPECT_EQ(content_sample(counting(0)), content_sample(counting(0)));
  const auto lines = content_sample(counting(0)), others = content_sample(counting(1));
  ASSERT_EQ(lines.size(), others.size());
  EXPECT_GE(lines.size(), 10U);
  for (size_t i = 0; i < lines.size(); ++i) EXPECT_NE(lines[i], others[i]);
  EXPECT_THAT(lines.front(), HasSubstr("sample 0 of from_arrays(1000): "));
  EXPECT_THAT(lines.back(), HasSubstr("sample 999 of from_arrays(1000): "));
}

TEST(ContentSample, IsOfAllSourcesAndOfNoGenerator) {
  const Dataset few = Dataset::from_arrays({Array(DType::kFloat32, {3, 1})});
  EXPECT_EQ(content_sample(Dataset::zip({few, few})).size(), 6U);
  EXPECT_EQ(content_sample(Dataset::from_arrays({Array(DType::kFloat32, {0, 1})})).size(), 0U);
  const Dataset generated =
      Dataset::from_generator({{DType::kFloat32, {}}},
                              [](const PassContext&) -> Generator { return [](Element*) { return false; }; });
  EXPECT_TRUE(content_sample(generated).empty());
}

std::string cursor_after_a_batch(const Dataset& dataset) {
  Pipeline pipeline(dataset, {.seed = 3});
  Batch batch;
  EXPECT_TRUE(pipeline.next(&batch));
  return pipeline.cursor();
}

TEST(ContentSample, AChangedDataSetIsNoticedWhenItGoesOn) {
  const std::string cursor = cursor_after_a_batch(counting(0));
  EXPECT_NO_THROW(Pipeline(counting(0), {.seed = 3}, cursor));
  EXPECT_THAT(message_of<FailedPrecondition>([&] { Pipeline(counting(1), {.seed = 3}, cursor); }),
              testing::AllOf(HasSubstr("the data are others than when the run was saved"),
                             HasSubstr("sample 0 of from_arrays(1000)")));
  // One file that was mended is worth a warning.
  EXPECT_NO_THROW(Pipeline(counting(0, 999), {.seed = 3}, cursor));
}

// The position before a batch that belongs together with the one after it.
TEST(ContentSample, AMarkedPositionIsWhereItWasSet) {
  Pipeline pipeline(counting(0), {.seed = 3});
  EXPECT_EQ(pipeline.marked_cursor(), pipeline.cursor());
  Batch batch;
  ASSERT_TRUE(pipeline.next(&batch));
  const std::string after_one = pipeline.cursor();
  pipeline.mark();
  ASSERT_TRUE(pipeline.next(&batch));
  EXPECT_EQ(pipeline.marked_cursor(), after_one);
  EXPECT_NE(pipeline.cursor(), after_one);
}

}  // namespace
}  // namespace mox
