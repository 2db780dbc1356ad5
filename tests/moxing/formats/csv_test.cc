#include "moxing/formats/csv.h"

#include <fmt/format.h>
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>

#include "moxing/formats/internal/csv/csv_blocks.h"
#include "runtime/base/error.h"
#include "runtime/data/pipeline.h"
#include "tests/support/message_of.h"
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
  for (const char* label : {"16777217,1", "-16777217,1"})  // float32 has no such number, but one beside it
    EXPECT_THAT(message_of<DataError>([&] { csv(directory.write("y.csv", label), {}, 0); }),
                HasSubstr("no whole number below 2^24"));
  EXPECT_EQ(csv(directory.write("y.csv", "16777215,1"), {}, 0).cardinality(), 1);
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
  // As the options of a program are called.
  EXPECT_THAT(message("a,b\n1,2\n", {.option_prefix = "data.csv_"}), HasSubstr("(data.csv_header)"));
  EXPECT_THAT(message("1,\n", {.option_prefix = "data.csv_"}), HasSubstr("data.csv_missing says"));
  EXPECT_THAT(message(std::string_view("\xff\xfe"
                                       "1\0,\0",
                                       6)),
              HasSubstr("UTF-16"));
  EXPECT_THAT(message("\x1f\x8b\x08"), HasSubstr("gunzip"));
  EXPECT_THROW(parse_csv("1", {.decimal = ','}, "x"), InvalidArgument);
}

TEST(Csv, ASampleThatIsPassedOverAsAHeaderIsNamed) {
  const auto warned = [](std::string_view text) {
    testing::internal::CaptureStderr();
    parse_csv(text, {.header = true, .option_prefix = "data.csv_"}, "x.csv");
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(warned("\n5,0,12\n3,0,7\n"),
              testing::AllOf(HasSubstr("'x.csv': the first line is passed over"),
                             HasSubstr("(data.csv_header)"), HasSubstr("'5,0,12'")));
  for (const char* text : {"label,a,b\n3,0,7\n", "0,1,2\n3,0,7\n", "1,2,3\n3,0,7\n", "5,b,c\n3,0,7\n"})
    EXPECT_EQ(warned(text), "") << text;
}

TEST(Csv, NothingStandsForALabelThatIsMissing) {
  const TemporaryDirectory directory;
  const CsvOptions zero{.missing = 0.0F};
  const std::string full = directory.write("full.csv", "1,2,0\n,3,1\n");
  EXPECT_EQ(csv(full, zero, 2).cardinality(), 2);
  EXPECT_EQ(csv_regression(full, zero, 2).cardinality(), 2);
  const std::string no_label = directory.write("no_label.csv", "1,2,0\n1,3,\n");
  EXPECT_THAT(
      message_of<DataError>([&] { csv(no_label, zero, 2); }),
      HasSubstr("line 2, column 3: '' is no number that float32 can hold: it is the label or the target, "
                "for which CsvOptions::missing does not stand"));
  const std::string no_target = directory.write("no_target.csv", "1,NA,0\n");
  EXPECT_THAT(message_of<DataError>([&] { csv_regression(no_target, zero, 1); }),
              HasSubstr("line 1, column 2: 'NA'"));
}

// What `read` gives, or the error.
std::string numbers_or_error(const std::function<Array()>& read) {
  try {
    const Array array = read();
    std::string result = to_string(array.shape());
    for (const float value : array.values<float>()) result += fmt::format(" {}", value);
    return result;
  } catch (const DataError& error) {
    return error.what();
  }
}

TEST(Csv, IsTheSameInBlocksOfAnySize) {
  const CsvOptions with_header{.header = true};
  const auto of_text = [](std::string_view text, const CsvOptions& options) {
    return numbers_or_error([&] { return parse_csv(text, options, "x.csv"); });
  };
  EXPECT_EQ(of_text("a,b\r\n1,2\r\n\r\n3,4", with_header), "[2, 2] 1 2 3 4");
  EXPECT_EQ(of_text("1,2\n\r\r\n3,4\r5,\n", {}),
            "'x.csv', line 5, column 2: '' is no number that float32 can hold: the cell is empty or a value "
            "that is missing; CsvOptions::missing says what stands for one");
  const TemporaryDirectory directory;
  for (const std::string_view text : {"", "\n", "\r\n\r\n", "1", "1,2\r\n3,4\r\n", "1,2\r3,4\r\r5,6",
                                      "\"1\",2\n3,\"4\"\n", "1,2\n\"3\n4\",5\n", "1,2\r\n\"3\r\n4\",5\r\n",
                                      "\xef\xbb\xbf"
                                      "1\n2\n",
                                      "a,b\n\n1,2\n3,4\n", "\n \na,b\r\n1,2\r\n\r\n3\r\n", "1,2\n3,4,5\n",
                                      "1,2\n3\n4,x\n", "1,2\n3,x\n4\n", "1\n2,3\n4,5\n",
                                      "\xff\xfe"
                                      "1\n",
                                      "1,2\n3,4\n\r\n\n\r5,6,7"}) {
    const std::string path = directory.write("x.csv", text);
    for (const CsvOptions& options : {CsvOptions(), with_header})
      for (size_t block = 1; block <= text.size() + 1; ++block) {
        EXPECT_EQ(
            numbers_or_error([&] { return internal::read_csv_in_blocks(path, options, {.bytes = block}); }),
            numbers_or_error([&] { return parse_csv(text, options, path); }))
            << text << " in blocks of " << block;
      }
  }
}

TEST(Csv, TheFirstLineIsTheSameInBlocksOfAnySize) {
  const TemporaryDirectory directory;
  for (const auto& [text, line] :
       std::vector<std::pair<std::string, std::string>>{{"", ""},
                                                        {"\r\n \n", ""},
                                                        {"a", "a"},
                                                        {"a,b\r\n1,2", "a,b"},
                                                        {"\xef\xbb\xbf\n\r\n\na b\rc", "a b"},
                                                        {"\xef\xbb\xbf", ""},
                                                        {"\n\xef\xbb\xbf"
                                                         "a\n",
                                                         "\xef\xbb\xbf"
                                                         "a"}}) {
    const std::string path = directory.write("x.csv", text);
    for (size_t block = 1; block <= text.size() + 1; ++block)
      EXPECT_EQ(internal::first_csv_line(path, {.bytes = block}), line) << text << " in blocks of " << block;
  }
}

// Where a line begins in one block and ends in another one as well, and whatever its place.
TEST(Csv, LinesThatAreTooLongAreRefused) {
  const TemporaryDirectory directory;
  const std::string twenty = "1,2,3,4,5,6,7,8,9,10";
  const CsvOptions with_header{.header = true};
  for (const char* end : {"\n", "\r\n", "\r"})
    for (const std::string& text : {twenty + end + twenty + end + twenty, twenty + end + twenty + end}) {
      const std::string path = directory.write("x.csv", text);
      for (size_t block = 1; block <= text.size(); ++block) {
        const auto read = [&](const CsvOptions& options, size_t longest) {
          return numbers_or_error([&] {
            return internal::read_csv_in_blocks(path, options, {.bytes = block, .longest_line = longest});
          });
        };
        EXPECT_EQ(read({}, 20), numbers_or_error([&] { return parse_csv(text, {}, path); })) << block;
        EXPECT_THAT(read({}, 19), HasSubstr("x.csv', line 1: no line end in 19 bytes")) << block;
        EXPECT_THAT(read(with_header, 19), HasSubstr("x.csv', line 1: no line end in 19 bytes")) << block;
        EXPECT_EQ(internal::first_csv_line(path, {.bytes = block, .longest_line = 20}), twenty);
        EXPECT_THROW(internal::first_csv_line(path, {.bytes = block, .longest_line = 19}), DataError);
      }
      const std::string later = directory.write("x.csv", "1" + std::string(end) + "2" + end + text);
      for (size_t block = 1; block <= text.size(); ++block)
        EXPECT_THAT(numbers_or_error([&] {
                      return internal::read_csv_in_blocks(later, {}, {.bytes = block, .longest_line = 19});
                    }),
                    HasSubstr("x.csv', line 3: no line end in 19 bytes"))
            << block;
    }
}

// Enough text for several slices, with lines that end in each way.
TEST(Csv, LargeFilesAreParsedInSlices) {
  constexpr int64_t kRows = 400'000;
  std::string text = "a,b\n";
  for (int64_t row = 0; row < kRows; ++row)
    text += fmt::format("{},-{}.5{}", row, row % 1000, row % 3 == 0 ? "\r\n" : row % 3 == 1 ? "\n" : "\r");
  const TemporaryDirectory directory;
  const std::string path = directory.write("x.csv", text);
  // Blocks of less than a slice, of several slices, and the usual ones.
  for (const size_t block : {size_t{100'003}, size_t{3} << 20, internal::CsvBlocks().bytes}) {
    const Array array = internal::read_csv_in_blocks(path, {.header = true}, {.bytes = block});
    ASSERT_EQ(array.shape(), Shape({kRows, 2}));
    for (int64_t row = 0; row < kRows; ++row) {
      ASSERT_EQ(array.values<float>()[2 * row], static_cast<float>(row));
      ASSERT_EQ(array.values<float>()[2 * row + 1], -static_cast<float>(row % 1000) - 0.5f);
    }
  }
  const auto with = [&](std::string_view before, std::string_view after) {
    std::string other = text;
    return other.replace(other.find(before), before.size(), after);
  };
  const auto refused = [&](const std::string& content) {
    return message_of<DataError>([&] { parse_csv(content, {.header = true}, "x.csv"); });
  };
  EXPECT_THAT(refused(with("\n300001,-1.5", "\n300001,y") + "z\n"), HasSubstr("line 300003, column 2: 'y'"));
  EXPECT_THAT(refused(with("\n300001,-1.5", "\n300001") + "z\n"), HasSubstr("line 300003: 1 numbers"));
}

// What a file is made of that holds nothing, as the system gives it: zeros, for as long as nobody looks.
TEST(Csv, AFileWithoutLineEndsIsRefusedInBoundedMemory) {
  const TemporaryDirectory directory;
  const std::string path = directory.write("x.csv", "1,2\n");
  std::filesystem::resize_file(path, uintmax_t{50} << 30);
  EXPECT_THAT(message_of<DataError>([&] { read_csv(path); }),
              AllOf(HasSubstr("x.csv', line 2"), HasSubstr("no line end in 268435456 bytes")));
  std::filesystem::resize_file(path, 0);
  std::filesystem::resize_file(path, uintmax_t{50} << 30);
  EXPECT_THAT(message_of<DataError>([&] { csv_column(path, "a"); }), HasSubstr("x.csv', line 1"));
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
