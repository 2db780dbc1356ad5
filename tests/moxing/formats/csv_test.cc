#include "moxing/formats/csv.h"

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

TEST(Csv, ReadsNumbers) {
  TemporaryDirectory directory;
  const Array array = read_csv(directory.write("x.csv", "a,b\r\n1, -2.5\r\n\r\n3e-1 ,4"), {.header = true});
  EXPECT_EQ(array.shape(), (Shape{2, 2}));
  EXPECT_THAT(array.values<float>(), ElementsAre(1, -2.5f, 0.3f, 4));
  EXPECT_EQ(parse_csv("1;2", {.delimiter = ';'}, "x").shape(), (Shape{1, 2}));
  EXPECT_EQ(parse_csv("", {}, "x").shape(), (Shape{0, 0}));
}

TEST(Csv, GivesSamples) {
  TemporaryDirectory directory;
  const std::string path = directory.write("x.csv", "label,a,b\n1,2,3\n0,-4,5.5\n");
  const Dataset numbers = csv(path, {.header = true});
  EXPECT_EQ(numbers.signature(), (std::vector<TensorType>{{DType::kFloat32, {3}}}));
  Pipeline pipeline(csv(path, {.header = true}, 0).batch(2), {});
  Batch batch;
  ASSERT_TRUE(pipeline.next(&batch));
  EXPECT_THAT(batch.components[0].values<float>(), ElementsAre(2, 3, -4, 5.5f));
  EXPECT_THAT(batch.components[1].values<int32_t>(), ElementsAre(1, 0));
}

TEST(Csv, RefusesLabelsThatAreNone) {
  TemporaryDirectory directory;
  const std::string path = directory.write("x.csv", "1,2\n3,4.5\n5,1e9\n");
  EXPECT_THAT(message_of<DataError>([&] { csv(path, {}, 1); }),
              AllOf(HasSubstr("x.csv"), HasSubstr("sample 2")));
  EXPECT_THAT(message_of<DataError>([&] { csv(path, {}, 2); }), HasSubstr("no label column 2"));
  EXPECT_THAT(message_of<DataError>([&] { csv(path, {}, -1); }), HasSubstr("no label column -1"));
}

TEST(Csv, NamesTheCellThatIsBad) {
  const auto message = [](std::string_view text) {
    return message_of<DataError>([&] { parse_csv(text, {}, "dir/x.csv"); });
  };
  EXPECT_THAT(message("1,2\n3,x\n"),
              AllOf(HasSubstr("dir/x.csv"), HasSubstr("line 2, column 2"), HasSubstr("'x'")));
  EXPECT_THAT(message("1,2\n3\n"), HasSubstr("line 2: 1 numbers"));
  for (const char* bad : {"1,", "nan", "inf", "1e99", "0x10", "1 2", "\"1\""})
    EXPECT_THAT(message(bad), HasSubstr("line 1"));
}

}  // namespace
}  // namespace mox::data
