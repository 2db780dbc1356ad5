#include "moxing/formats/csv.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <cmath>

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
  for (const char* bad :
       {"1,", "nan", "inf", "1e99", "0x10", "1 2", "\"1", "+-1", "++1", "+", "1e39", "-1e400"})
    EXPECT_THAT(message(bad), HasSubstr("line 1"));
}

TEST(Csv, ReadsWhatSpreadsheetsAndStatisticiansWrite) {
  const auto values = [](std::string_view text, const CsvOptions& options = {}) {
    const Array array = parse_csv(text, options, "x");
    const auto all = array.values<float>();
    return std::vector<float>(all.begin(), all.end());
  };
  EXPECT_THAT(values("\xef\xbb\xbf"
                     "1,2\n"),
              ElementsAre(1, 2));
  EXPECT_THAT(values("\"1\", \"-2.5\"\r3,\" 4 \"\r"), ElementsAre(1, -2.5f, 3, 4));
  EXPECT_THAT(values("1,5;-0,25\n\"2,0\";3\n", {.delimiter = ';', .decimal = ','}),
              ElementsAre(1.5f, -0.25f, 2, 3));
  EXPECT_THAT(values("\"1,5\",2\n", {.delimiter = '\t', .header = true}), testing::IsEmpty());
  EXPECT_THAT(values("1\t2\n3\t\n", {.delimiter = '\t', .missing = -1.0f}), ElementsAre(1, 2, 3, -1));
  EXPECT_THAT(values("NA,,\"\"\nnan,?,N/A\n", {.missing = 7.0f}), ElementsAre(7, 7, 7, 7, 7, 7));
  EXPECT_THAT(values("+1.5\n"), ElementsAre(1.5f));
}

TEST(Csv, ReadsNumbersTooSmallForFloat32AsTheNearest) {
  for (const char* text :
       {"1e-50", "-4e-46", "1e-320", "0.0000000000000000000000000000000000000000000000000001", "1e-400",
        "-1e-999999", "1e-45"}) {
    const Array array = parse_csv(text, {}, "x");
    const float value = array.values<float>()[0];
    EXPECT_LE(std::fabs(value), 1e-44f) << text;
    EXPECT_EQ(std::signbit(value), text[0] == '-') << text;
  }
  EXPECT_EQ(parse_csv("1e-40", {}, "x").values<float>()[0], 1e-40f);
}

TEST(Csv, SaysHowToGoOn) {
  const auto message = [](std::string_view text, const CsvOptions& options = {}) {
    return message_of<DataError>([&] { parse_csv(text, options, "x.csv"); });
  };
  EXPECT_THAT(message("1,NA\n"), HasSubstr("missing"));
  EXPECT_THAT(message("1,\n"), HasSubstr("missing"));
  EXPECT_THAT(message("1;2\n"), HasSubstr("CsvOptions::delimiter"));
  EXPECT_THAT(message("1,5;2\n", {.delimiter = ';'}), HasSubstr("CsvOptions::decimal"));
  EXPECT_THAT(message("a,b\n1,2\n"), HasSubstr("CsvOptions::header"));
  EXPECT_THAT(message(std::string_view("\xff\xfe"
                                       "1\0,\0",
                                       6)),
              HasSubstr("UTF-16"));
  EXPECT_THAT(message("\x1f\x8b\x08"), HasSubstr("gunzip"));
  EXPECT_THROW(parse_csv("1", {.decimal = ','}, "x"), InvalidArgument);
}

TEST(Csv, ColumnsByNameAndRealTargets) {
  TemporaryDirectory directory;
  const std::string path = directory.write("x.csv", "\xef\xbb\xbf\"size\", price\n1,2.5\n3,4.25\n");
  EXPECT_EQ(csv_column(path, "price"), 1);
  EXPECT_EQ(csv_column(path, "size"), 0);
  EXPECT_THAT(message_of<NotFound>([&] { csv_column(path, "cost"); }), HasSubstr("'size', 'price'"));
  Pipeline pipeline(csv_regression(path, {.header = true}, 1).batch(2), {});
  Batch batch;
  ASSERT_TRUE(pipeline.next(&batch));
  EXPECT_THAT(batch.components[0].values<float>(), ElementsAre(1, 3));
  EXPECT_THAT(batch.components[1].values<float>(), ElementsAre(2.5f, 4.25f));
  EXPECT_THAT(message_of<DataError>([&] { csv(path, {.header = true}, 1); }), HasSubstr("csv_regression"));
}

}  // namespace
}  // namespace mox::data
