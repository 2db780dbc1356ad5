// Tables of text: every cell as it stands in the file, or a line that says where it cannot be read.
#include "moxing/formats/csv_table.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "moxing/formats/internal/csv/csv_blocks.h"
#include "moxing/formats/internal/csv/csv_rows.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_directory.h"

namespace mox::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> row(const CsvTable& table, int64_t index) {
  std::vector<std::string> cells;
  for (size_t c = 0; c < table.columns().size(); ++c) cells.emplace_back(table.cell(index, c));
  return cells;
}

CsvTable parse(const std::string& text, char delimiter = ',') {
  return parse_csv_table(text, delimiter, "t.csv");
}

std::string refusal(const std::string& text, char delimiter = ',') {
  return message_of<DataError>([&] { parse(text, delimiter); });
}

TEST(CsvTable, KeepsCellsAsTheyStand) {
  const CsvTable table =
      parse("\xef\xbb\xbfname, age ,\"the city\"\n Ann ,31,\"a, \"\"b\"\"\"\r\n\n  \nBob,,\" x \"\n");
  EXPECT_THAT(table.columns(), ElementsAre("name", "age", "the city"));
  ASSERT_EQ(table.rows(), 2);
  EXPECT_THAT(row(table, 0), ElementsAre("Ann", "31", "a, \"b\""));
  EXPECT_THAT(row(table, 1), ElementsAre("Bob", "", " x "));
  EXPECT_EQ(table.line(1), 5);
}

TEST(CsvTable, CountsLinesWithinQuotes) {
  const CsvTable table = parse("a,b\n\"one\r\ntwo\nthree\",1\r4,5");
  ASSERT_EQ(table.rows(), 2);
  EXPECT_THAT(row(table, 0), ElementsAre("one\r\ntwo\nthree", "1"));
  EXPECT_EQ(table.line(0), 2);
  EXPECT_EQ(table.line(1), 5);
  EXPECT_EQ(table.place(1, 1), "'t.csv', line 5, column 'b'");
}

TEST(CsvTable, KeepsEmptyCellsBetweenTabs) {
  const CsvTable table = parse("a\tb\tc\n\t\t\n1\t \t3\n", '\t');
  ASSERT_EQ(table.rows(), 2);
  EXPECT_THAT(row(table, 0), ElementsAre("", "", ""));
  EXPECT_THAT(row(table, 1), ElementsAre("1", "", "3"));
}

TEST(CsvTable, RefusesWhatDoesNotFitTogether) {
  EXPECT_THAT(refusal(""), HasSubstr("is empty"));
  EXPECT_THAT(refusal("a,b\n1,2\n3\n"),
              AllOf(HasSubstr("'t.csv', line 3"), HasSubstr("1 cells"), HasSubstr("2 columns")));
  EXPECT_THAT(refusal("a;b\n1,5;2\n"), HasSubstr("seems to be ';'"));
  EXPECT_THAT(refusal(",a\n0,1\n"), AllOf(HasSubstr("column 1 has no name"), HasSubstr("index=False")));
  EXPECT_THAT(refusal("a,b,a\n"), HasSubstr("two columns, 1 and 3, are called 'a'"));
  EXPECT_THAT(refusal("a,b\n1,\"2\n3,4\n"), AllOf(HasSubstr("line 2"), HasSubstr("does not end")));
  EXPECT_THAT(refusal("a\n\"x\"y\n"), HasSubstr("text follows the quote"));
  EXPECT_THAT(refusal(std::string("\xff\xfe"
                                  "a\0",
                                  4)),
              HasSubstr("UTF-16"));
}

TEST(CsvTable, NamesTheNearestColumn) {
  const CsvTable table = parse("height,weight\n1,2\n");
  EXPECT_EQ(table.column("weight"), 1u);
  EXPECT_THAT(message_of<NotFound>([&] { table.column("wieght"); }),
              AllOf(HasSubstr("is 'weight' meant?"), HasSubstr("it has height, weight")));
}

TEST(CsvTable, ReadsNumbersExactly) {
  EXPECT_EQ(parse_number("+1.5"), 1.5);
  EXPECT_EQ(parse_number("-2e-3"), -0.002);
  EXPECT_EQ(parse_number("1700000001"), 1700000001.0);
  EXPECT_EQ(parse_number("1,5", ','), 1.5);
  for (const char* text : {"", "+", "+-1", "1.5x", "nan", "inf", "1e999", "0x10", "1,5", "1 2"})
    EXPECT_FALSE(parse_number(text)) << text;
  EXPECT_FALSE(parse_number("1.5", ','));
}

TEST(CsvTable, BytesThatAreNoUtf8AreRefusedWithTheirLine) {
  const auto refusal = [](const std::string& text) {
    return message_of<DataError>([&] { parse_csv_table(text, ',', "t.csv"); });
  };
  EXPECT_THAT(refusal("a,b\n1,x\n2,M\xfcller\n"),
              AllOf(HasSubstr("'t.csv', line 3"), HasSubstr("0xfc"), HasSubstr("iconv -f WINDOWS-1252")));
  for (const char* bytes :
       {"\x80", "\xc0\xaf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf5", "\xe2\x82", "\xc3"})
    EXPECT_THAT(refusal(std::string("a,b\n1,") + bytes), HasSubstr("line 2")) << bytes;
  for (const char* text : {"Müller", "€", "\xf0\x9f\x98\x80", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"}) {
    const CsvTable table = parse_csv_table(std::string("a\n") + text + "\n", ',', "t.csv");
    EXPECT_EQ(table.cell(0, 0), text);
  }
  EXPECT_THAT(refusal("a,b\r1,x\r2,M\xfcller\r"), HasSubstr("line 3"));
  EXPECT_THAT(refusal("a,b\r\n1,x\r\n2,M\xfcller\r\n"), HasSubstr("line 3"));
  EXPECT_THAT(refusal("a,b\r\xfc"), HasSubstr("line 2"));
}

// A command for an object of a store is one that can read it.
TEST(CsvTable, AdviceFitsWhereTheFileLies) {
  const auto refusal = [](const std::string& text, const char* name) {
    return message_of<DataError>([&] { parse_csv_table(text, ',', name); });
  };
  EXPECT_THAT(refusal("a\n\xfc", "t.csv"), HasSubstr("? iconv -f WINDOWS-1252 -t UTF-8 't.csv' > new.csv"));
  EXPECT_THAT(refusal("a\n\xfc", "s3://bucket/t.csv"),
              HasSubstr("? mox file cat 's3://bucket/t.csv' | iconv -f WINDOWS-1252 -t UTF-8 > new.csv"));
  EXPECT_THAT(refusal("\xff\xfe\n", "obs://bucket/t.csv"),
              HasSubstr("mox file cat 'obs://bucket/t.csv' | iconv -f UTF-16 -t UTF-8 > new.csv"));
  EXPECT_THAT(refusal("\x1f\x8b\n", "s3://bucket/t.csv"),
              HasSubstr("mox file cat 's3://bucket/t.csv' | gunzip -c > new.csv"));
}

TEST(CsvTable, AnotherDelimiterIsNamedWhereAColumnIsLookedFor) {
  const CsvTable table = parse_csv_table("a\tb\ty\n1\t2\t3\n", ',', "t.csv");
  EXPECT_THAT(message_of<NotFound>([&] { table.column("y"); }),
              HasSubstr("the delimiter seems to be a tab: say so (delimiter)"));
  EXPECT_THAT(message_of<NotFound>([] { parse_csv_table("a,b\n1,2\n", ';', "t.csv").column("b"); }),
              HasSubstr("the delimiter seems to be ','"));
}

// What `read` gives, or the error.
std::string table_or_error(const std::function<CsvTable()>& read) {
  try {
    const CsvTable table = read();
    std::string all = fmt::format("{:08x}", table.checksum());
    for (const std::string_view name : table.columns()) all += fmt::format(" [{}]", name);
    for (int64_t i = 0; i < table.rows(); ++i)
      all += fmt::format("\n{}: [{}]", table.line(i), fmt::join(row(table, i), "] ["));
    return all;
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(CsvTable, IsTheSameInBlocksOfAnySize) {
  const TemporaryDirectory directory;
  const std::string mark = "\xef\xbb\xbf";
  for (const std::string& text : std::vector<std::string>{
           "", " ", "\n\r\n \r", mark, "a", "a,b\r\n1,2\r\n\r\n3,4", mark + "a,b\r1,2\r\r3,4\r",
           mark + "sep=,\r\na,b\r\n1,2\r\n", "sep=;\na;b\n", "sep=,", "sep=,\n", mark + "sep=,\r",
           "\nsep=,\n1\n", " a , \"b \"\"c\"\"\" \n\"1\r\n2\",\"3\n\"\"\"\r\n \t\r\n\"\",\"\r\"\n",
           "a,b\n1,2\n3\n4,5\n", "a,b\n1,2,3\n", "a,a\n1,2\n", "a,\n1,2\n", "a,b\n1,\"2\n3,4\n",
           "a,b\n1,\"2\"\"\n", "a\n\"x\"y\nz\n", "a\n\"x\" \r\n\"y\"\r\n", "a;b\n1;2\n3\n",
           "ä,€\nM\xc3\xbcller,\xf0\x9f\x98\x80\n", "a,b\n1,x\r\n2,M\xfcller\n", "a,b\n\xff\n3,4\n",
           "a,b\n1,\xe2\x82", "a,b\n1,\xe2\x82\n2,3\n", "a,b\n\xf0\x9f\x98,1\n",
           "\xff\xfe"
           "a\n",
           "\x1f\x8b\x08\n", "PK\x03\x04\n",
           // What is no UTF-8 is told first, though it comes later, and so are its lines.
           "a,b\n1\n2,3\r\n\r4,5\r\n\r\n\xfc,6\n"}) {
    const std::string path = directory.write("t.csv", text);
    const std::string whole = table_or_error([&] { return parse_csv_table(text, ',', path); });
    EXPECT_EQ(table_or_error([&] { return read_csv_table(path); }), whole);
    for (size_t block = 1; block <= text.size() + 1; ++block)
      EXPECT_EQ(
          table_or_error([&] { return internal::read_csv_table_in_blocks(path, ',', {.bytes = block}); }),
          whole)
          << text << " in blocks of " << block;
  }
}

// The rows of texts that nobody would write, and their errors.
TEST(CsvTable, OfAnyTextIsTheSameInBlocks) {
  std::mt19937 random(1);
  const std::vector<std::string> pieces = {"a",  "b",  ",",    ",", "\"", "\"", "\n",
                                           "\n", "\r", "\r\n", " ", "ü",  "€",  "\xc3"};
  const auto cells = [](const TextRange& texts) {
    return fmt::format("[{}]", fmt::join(texts.strings(), "] ["));
  };
  for (int i = 0; i < 2'000; ++i) {
    std::string text = i % 2 ? "x,y\n" : "x\n";
    for (auto left = random() % 20; left > 0; --left)
      text += pieces[random() % (pieces.size() - (i % 8 ? 1 : 0))];
    std::string whole, in_blocks;
    try {
      const CsvTable table = parse_csv_table(text, ',', "t.csv");
      whole = cells(table.columns());
      for (int64_t r = 0; r < table.rows(); ++r)
        whole += fmt::format(" {} [{}]", table.line(r), fmt::join(row(table, r), "] ["));
    } catch (const DataError& error) {
      whole = error.what();
    }
    const size_t block = 1 + random() % (text.size() + 1);
    try {
      const internal::MemorySource source(std::as_bytes(std::span(text)));
      internal::SourceStream stream(source);
      uint32_t checksum = 0;
      const internal::CsvRows rows = internal::csv_rows(stream, block, ',', "t.csv", &checksum);
      EXPECT_EQ(checksum, crc32(std::as_bytes(std::span(text))));
      in_blocks = cells({rows.texts, 0, rows.columns});
      for (size_t r = 0; r < rows.lines.size(); ++r)
        in_blocks +=
            fmt::format(" {} {}", rows.lines[r], cells({rows.texts, (r + 1) * rows.columns, rows.columns}));
    } catch (const DataError& error) {
      in_blocks = error.what();
    }
    ASSERT_EQ(in_blocks, whole) << testing::PrintToString(text) << " in blocks of " << block;
  }
}

// Spreadsheets take it for the name of the delimiter.
TEST(CsvTable, ReadsOverTheLineThatTellsSpreadsheetsTheDelimiter) {
  for (const char* end : {"\n", "\r\n"})
    for (const char* mark : {"", "\xEF\xBB\xBF"}) {
      const std::string text = std::string(mark) + "sep=;" + end + "a;b" + end + "1;2" + end;
      const CsvTable table = parse_csv_table(text, ';', "t.csv");
      EXPECT_THAT(table.columns(), ElementsAre("a", "b"));
      EXPECT_EQ(table.rows(), 1);
      EXPECT_EQ(table.line(0), 3);
      EXPECT_THAT(message_of<InvalidArgument>([&] { parse_csv_table(text, ',', "t.csv"); }),
                  AllOf(HasSubstr("its delimiter is ';', not ','"), HasSubstr("say so (delimiter)")));
    }
}

}  // namespace
}  // namespace mox::data
