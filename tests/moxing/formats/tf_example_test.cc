#include "moxing/formats/tf_example.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "runtime/data/pipeline.h"
#include "tests/support/temporary_directory.h"

namespace mox::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Example sample(int64_t label) {
  return {{"label", std::vector<int64_t>{label}},
          {"weights", std::vector<float>{0.5f, static_cast<float>(label)}},
          {"pixels", std::vector<std::string>{std::string("\1\2\3", 3)}}};
}

std::string write_examples(const TemporaryDirectory& directory, const std::vector<Example>& examples) {
  TfRecordWriter writer(directory.file("examples"));
  for (const Example& example : examples) writer.write(as_bytes(serialize_example(example)));
  writer.close();
  return directory.file("examples");
}

const std::vector<FeatureSpec> kSpecs{{.name = "label", .dtype = DType::kInt32, .shape = {}},
                                      {.name = "weights", .dtype = DType::kFloat32, .shape = {2}},
                                      {.name = "pixels", .dtype = DType::kUInt8, .shape = {3, 1}}};

// The bytes as protoc prints them for features { feature { key: "a" value { int64_list { value: 300 } } } }.
TEST(TfExample, HasTheDocumentedBytes) {
  const std::string bytes(
      "\x0a\x0d\x0a\x0b\x0a\x01"
      "a"
      "\x12\x06\x1a\x04\x0a\x02\xac\x02",
      15);
  EXPECT_EQ(serialize_example({{"a", std::vector<int64_t>{300}}}), bytes);
  EXPECT_EQ(parse_example(as_bytes(bytes), ""), (Example{{"a", std::vector<int64_t>{300}}}));
}

TEST(TfExample, ReadsIntoABatch) {
  TemporaryDirectory directory;
  const std::string path = write_examples(directory, {sample(3), sample(4), sample(5)});
  Pipeline pipeline(tf_examples(path, kSpecs).batch(2), {});
  Batch batch;
  ASSERT_TRUE(pipeline.next(&batch));
  EXPECT_THAT(batch.components[0].values<int32_t>(), ElementsAre(3, 4));
  EXPECT_THAT(batch.components[1].values<float>(), ElementsAre(0.5f, 3, 0.5f, 4));
  EXPECT_THAT(batch.components[2].values<uint8_t>(), ElementsAre(1, 2, 3, 1, 2, 3));
  ASSERT_TRUE(pipeline.next(&batch));
  EXPECT_EQ(batch.size, 1);
  EXPECT_FALSE(pipeline.next(&batch));
}

TEST(TfExample, FillsInDefaults) {
  const std::vector<FeatureSpec> specs{
      {.name = "none", .dtype = DType::kInt64, .shape = {2}, .default_value = -1}};
  std::vector<int64_t> values(2);
  std::byte* out = reinterpret_cast<std::byte*>(values.data());
  read_features(as_bytes(serialize_example(sample(1))), specs, {{out}}, "here");
  EXPECT_THAT(values, ElementsAre(-1, -1));
}

std::string failure(FeatureSpec spec, const Example& example) {
  Array out(spec.dtype, spec.shape);
  std::byte* data = out.data();
  const std::vector<FeatureSpec> specs{std::move(spec)};
  return message_of<DataError>(
      [&] { read_features(as_bytes(serialize_example(example)), specs, {{data}}, "'f', offset 7"); });
}

TEST(TfExample, NamesTheFeatureThatDoesNotFit) {
  EXPECT_THAT(failure({.name = "lable", .dtype = DType::kInt64, .shape = {}}, sample(1)),
              AllOf(HasSubstr("'f', offset 7"), HasSubstr("'lable' is missing"),
                    HasSubstr("it has label, pixels, weights")));
  EXPECT_THAT(failure({.name = "label", .dtype = DType::kFloat32, .shape = {}}, sample(1)),
              HasSubstr("is a list of integers; floats are expected"));
  EXPECT_THAT(failure({.name = "weights", .dtype = DType::kFloat32, .shape = {3}}, sample(1)),
              HasSubstr("has 2 values; the shape [3] takes 3"));
  EXPECT_THAT(failure({.name = "pixels", .dtype = DType::kUInt8, .shape = {4}}, sample(1)),
              HasSubstr("has 3 bytes; the shape [4] takes 4"));
  EXPECT_THAT(failure({.name = "label", .dtype = DType::kInt32, .shape = {}}, sample(int64_t{1} << 40)),
              HasSubstr("1099511627776, which does not fit into int32"));
}

TEST(TfExample, RefusesWhatIsNone) {
  EXPECT_THROW(parse_example(as_bytes("no example"), "here"), DataError);
  TemporaryDirectory directory;
  const std::string path = write_examples(directory, {});
  EXPECT_THROW(tf_examples(path, {}), InvalidArgument);
  EXPECT_THROW(tf_examples(path, {{.name = "a", .dtype = DType::kBool, .shape = {}}}), InvalidArgument);
  EXPECT_THROW(tf_examples(path, {{.name = "a", .dtype = DType::kUInt8, .shape = {}, .default_value = 256}}),
               InvalidArgument);
}

}  // namespace
}  // namespace mox::data
