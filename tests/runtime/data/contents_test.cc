// Data of the same names, number and types, but other contents.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "runtime/data/content_sample.h"
#include "runtime/data/pipeline.h"
#include "runtime/data/shared_content.h"
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

TEST(ContentSample, AMarkIsOfTheDataAlone) {
  const std::string mark = content_mark(counting(0));
  EXPECT_THAT(mark, testing::AllOf(testing::StartsWith("contents "), HasSubstr(counting(0).describe())));
  EXPECT_TRUE(are_of_the_same_data(mark, content_mark(counting(0))));
  EXPECT_FALSE(are_of_the_same_data(mark, content_mark(counting(1))));
  EXPECT_FALSE(are_of_the_same_data(mark, content_mark(counting(0, 999)))) << "one other sample";
  EXPECT_FALSE(are_of_the_same_data(mark, content_mark(counting(0).take(3))));
  const auto zeros = [](DType type, int64_t samples) {
    return content_mark(Dataset::from_arrays({Array(type, {samples, 2})}));
  };
  EXPECT_NE(zeros(DType::kFloat32, 3), zeros(DType::kBFloat16, 3));
  EXPECT_TRUE(are_of_the_same_data(zeros(DType::kFloat32, 3), zeros(DType::kBFloat16, 3)));
  EXPECT_FALSE(are_of_the_same_data(zeros(DType::kFloat32, 3), zeros(DType::kBFloat16, 4)));
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

Dataset rows(int64_t count, float first) {
  Array x(DType::kFloat32, {count, 2});
  for (int64_t i = 0; i < 2 * count; ++i) x.values<float>()[i] = first + static_cast<float>(i);
  return Dataset::from_arrays({x});
}

// A source that names its samples, as files are.
class NamedRows : public RandomAccessSource {
 public:
  NamedRows(std::string folder, std::vector<int> numbers)
      : folder_(std::move(folder)), numbers_(std::move(numbers)) {}
  int64_t size() const override { return std::ssize(numbers_); }
  const std::vector<TensorType>& signature() const override { return signature_; }
  void read(int64_t index, const SampleContext&, std::span<std::byte* const> components) const override {
    *reinterpret_cast<int32_t*>(components[0]) = numbers_[static_cast<size_t>(index)];
  }
  std::string name(int64_t index) const override {
    return folder_ + "/daisy/" + std::to_string(numbers_[static_cast<size_t>(index)] % 1000) + ".jpg";
  }
  std::string describe() const override { return "named rows"; }

 private:
  std::string folder_;
  std::vector<int> numbers_;
  std::vector<TensorType> signature_{{DType::kInt32, Shape{}}};
};

Dataset named(const std::string& folder, std::vector<int> numbers) {
  return Dataset::from_source(std::make_shared<NamedRows>(folder, std::move(numbers)));
}

TEST(SharedContent, FindsDataThatAreTheTrainings) {
  const auto shared = shared_content(rows(100, 0).shuffle(9).repeat(), rows(100, 0));
  ASSERT_TRUE(shared);
  EXPECT_GE(shared->same, 10U);
  EXPECT_EQ(shared->same, shared->looked_at);
  EXPECT_FALSE(shared_content(rows(100, 0), rows(100, 1)));
  EXPECT_FALSE(shared_content(rows(100, 0), rows(50, 0)));  // which rows they are is not known
  // Parts of one source may be different ones, unless one of the two is all of it.
  EXPECT_FALSE(shared_content(rows(100, 0).take(80), rows(100, 0).skip(80)));
  EXPECT_TRUE(shared_content(rows(100, 0).take(80), rows(100, 0)));
  EXPECT_TRUE(shared_content(rows(100, 0).repeat(), rows(100, 0).skip(80)));
  // By what a checkpoint knows.
  EXPECT_TRUE(shared_content(contents_of_cursor(cursor_after_a_batch(rows(100, 0).batch(10))), rows(100, 0)));
  EXPECT_FALSE(
      shared_content(contents_of_cursor(cursor_after_a_batch(rows(100, 0).batch(10))), rows(100, 3)));
  EXPECT_FALSE(shared_content(contents_of_cursor(cursor_after_a_batch(rows(100, 0).batch(10))),
                              rows(100, 0).skip(80)));
  EXPECT_TRUE(contents_of_cursor("").empty());
}

TEST(SharedContent, FindsSomeOfTheTrainingsSamplesByTheirNames) {
  const Dataset training = named("a/train", {5, 6, 7, 8, 9});
  const auto shared = shared_content(training.repeat(), named("a/validation", {7, 9}));
  ASSERT_TRUE(shared);
  EXPECT_EQ(shared->same, 2U);
  EXPECT_EQ(shared->name, "a/validation/daisy/7.jpg");
  EXPECT_EQ(shared->trained_name, "a/train/daisy/7.jpg");
  EXPECT_FALSE(shared_content(training, named("a/validation", {10, 11})));
  EXPECT_FALSE(shared_content(training, named("a/validation", {1007, 1009})));  // the same names alone
  EXPECT_FALSE(shared_content(training, named("a/validation", {7, 10, 11})));   // fewer than half
  EXPECT_FALSE(shared_content(training.take(2), named("a/validation", {7, 9})));
}

}  // namespace
}  // namespace mox
