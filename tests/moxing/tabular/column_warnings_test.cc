// What is said of a column that is learnt from, or is not for what a person would see in it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <utility>

#include "moxing/tabular/internal/cell_words.h"
#include "moxing/tabular/table_schema.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "tests/support/message_of.h"

namespace mox {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

data::CsvTable table_of(const std::string& text) { return data::parse_csv_table(text, ',', "t.csv"); }

// What TableSchema::fit logs.
std::string said_of(const std::string& text, const TableOptions& options) {
  set_log_level(LogLevel::kInfo);  // other tests may have changed it
  testing::internal::CaptureStderr();
  TableSchema::fit(table_of(text), options);
  return testing::internal::GetCapturedStderr();
}

TEST(ColumnWarnings, WordsThatDifferOnlyInCaseOrSpacesAreSaid) {
  const TableOptions classes{.target = "y", .task = TableTask::kClassification};
  const std::string said = said_of("x,y\n1,yes\n2,YES\n3,\" yes\"\n4,no\n", classes);
  EXPECT_THAT(said, AllOf(HasSubstr("column 'y'"), HasSubstr("'YES'"), HasSubstr("' yes'"),
                          HasSubstr("only in case or spaces"), HasSubstr("(as 1 more do)")));
  EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
  EXPECT_EQ(said_of("x,y\n1,yes\n2,no\n", classes), "");
  EXPECT_THAT(
      said_of("c,y\nred,1\nRed ,2\nblue,3\n", {.target = "y"}),
      AllOf(HasSubstr("column 'c'"), HasSubstr("'Red' and 'red'"), HasSubstr("different categories")));
  EXPECT_THAT(said_of("c,y\n1,1\n1.0,2\n2,3\n", {.target = "y", .categories = {"c"}}),
              AllOf(HasSubstr("'1' and '1.0' are equal numbers"), HasSubstr("different categories")));
  EXPECT_EQ(said_of("c,y\n1,1\n1.0,2\n2,3\n", {.target = "y"}), "");
}

// Of classes that look the same half of the rows is taught one answer, and half the other.
TEST(ColumnWarnings, WordsThatLookTheSameAreSaidAndSpeltOut) {
  const TableOptions classes{.target = "y", .task = TableTask::kClassification};
  for (const auto& [unseen, number] : {std::pair{"\u200b", "200b"},
                                       {"\u200c", "200c"},
                                       {"\u200d", "200d"},
                                       {"\u2060", "2060"},
                                       {"\ufeff", "feff"},
                                       {"\u00ad", "ad"}}) {
    const std::string said = said_of(fmt::format("x,y\n1,yes\n2,y{}es\n3,no\n", unseen), classes);
    EXPECT_THAT(said, AllOf(HasSubstr("'yes'"), HasSubstr(fmt::format("'y\\u{{{}}}es'", number)),
                            HasSubstr("look the same, and are different classes")));
  }
  EXPECT_THAT(said_of("c,y\nCaf\u00e9,1\nCafe\u0301,2\nbar,3\n", {.target = "y"}),
              HasSubstr("'Cafe\\u{301}' and 'Café' look the same, and are different categories"));
  EXPECT_THAT(said_of("c,y\n\u00b5m,1\n\u03bcm,2\nbar,3\n", {.target = "y"}),
              HasSubstr("'\\u{b5}m' and 'μm' look the same"));
  for (const auto& [large, small] : {std::pair{"Édith", "édith"},
                                     {"ŁÓDŹ", "łódź"},
                                     {"ŞİŞLİ", "şi\u0307şli\u0307"},
                                     {"ÇA ÝÞ", "ça ýþ"},
                                     {"ΆΡΗΣ", "άρης"},
                                     {"ЁЖ", "ёж"},
                                     {"DŽ", "dž"},
                                     {"Ÿ", "ÿ"},
                                     {"E\u0301", "é"},
                                     {"ș", "Ș"}})
    EXPECT_THAT(said_of(fmt::format("x,y\n1,{}\n2,{}\n3,no\n", large, small), classes),
                HasSubstr("differ only in case or spaces"))
        << large;
  EXPECT_EQ(said_of("x,y\n1,e\n2,é\n3,è\n4,ø\n5,o\n6,ð\n7,×\n8,÷\n", classes), "");
}

// Neither is wrong by itself: class 3a may stand beside class 3.
TEST(ColumnWarnings, NumbersAndWordsInOneColumnAreSaid) {
  const TableOptions classes{.target = "y", .task = TableTask::kClassification};
  EXPECT_THAT(
      said_of("x,y\n1,1\n2,0\n3,1\n4,0\n5,yes\n6,no\n", classes),
      AllOf(HasSubstr("column 'y': of its 4 classes some are numbers (0, 1) and some are not (no, yes)"),
            HasSubstr("write them alike")));
  EXPECT_THAT(said_of("x,y\n1,1\n2,no\n3,yes\n4,no\n", classes), HasSubstr("are numbers (1) and"));
  EXPECT_EQ(said_of("x,y\n1,1\n2,2\n3,3\n", classes), "");
  EXPECT_EQ(said_of("x,y\n1,1a\n2,2a\n3,3a\n", classes), "");
  const std::string feature = "x,y\n1,1\nno,2\nyes,3\nno,4\n";
  EXPECT_THAT(
      said_of(feature, {.target = "y"}),
      AllOf(HasSubstr("column 'x': of its 3 categories some are numbers (1) and some are not (no, yes)"),
            HasSubstr("(categories)")));
  EXPECT_EQ(said_of(feature, {.target = "y", .categories = {"x"}}), "");
}

TEST(ColumnWarnings, AColumnThatCountsTheRowsIsSaid) {
  const auto table = [](int rows, int gap_after) {
    std::string text = "Unnamed: 0,x,y\n";
    for (int row = 0; row < rows; ++row)
      text += fmt::format("{},{},{}\n", 7 + row + (row > gap_after ? 1 : 0), row % 7, row % 3);
    return text;
  };
  EXPECT_THAT(said_of(table(40, 99), {.target = "y"}),
              AllOf(HasSubstr("column 'Unnamed: 0' counts the rows, from 7 to 46"), HasSubstr("(ignored)")));
  EXPECT_EQ(said_of(table(40, 20), {.target = "y"}), "");
  EXPECT_EQ(said_of(table(19, 99), {.target = "y"}), "") << "so few may do so by chance";
  EXPECT_EQ(said_of(table(40, 99), {.target = "y", .id = "Unnamed: 0"}), "");
  std::string large = "x,z,y\n";
  for (int row = 0; row < 40; ++row) large += fmt::format("9007199254740992,{},{}\n", row % 7, row % 3);
  EXPECT_THAT(said_of(large, {.target = "y"}), Not(HasSubstr("counts the rows")));
}

// Of 00123 the number is 123.
TEST(ColumnWarnings, NumbersThatBeginWithAZeroAreSaid) {
  const std::string text = "zip,x,y\n8001,1,1\n08002,2,2\n00123,3,3\n";
  EXPECT_THAT(
      said_of(text, {.target = "y"}),
      AllOf(HasSubstr("line 3, column 'zip': '08002' begins with a zero, as 2 of the column's 3 values"),
            HasSubstr("(categories)")));
  for (const TableOptions& said :
       {TableOptions{.target = "y", .numbers = {"zip"}}, TableOptions{.target = "y", .categories = {"zip"}},
        TableOptions{.target = "y", .ignored = {"zip"}}, TableOptions{.target = "y", .id = "zip"}})
    EXPECT_EQ(said_of(text, said), "");
  EXPECT_EQ(said_of("x,z,y\n0,0.5,1\n-0.25,01.5,2\n10,0e1,3\n", {.target = "y"}), "");
}

TEST(ColumnWarnings, AFewNumbersThatHideTheOthersAreSaid) {
  const auto column = [](const std::string& last) {
    std::string text = "x,y\n";
    for (int row = 0; row < 40; ++row) text += fmt::format("{},{}\n", 0.5 * (row % 7), row);
    return text + last + ",1\n";
  };
  for (const char* far : {"-999999", "1e100"})
    EXPECT_THAT(said_of(column(far), {.target = "y"}),
                AllOf(HasSubstr("column 'x'"), HasSubstr("between 0 and 3"), HasSubstr("missing_words")))
        << far;
  EXPECT_EQ(said_of(column("40"), {.target = "y"}), "") << "an outlier that leaves the others apart";
  EXPECT_EQ(said_of(column("3"), {.target = "y"}), "");
  std::string rare = "x,y\n1,1\n";  // one in a hundred is 1, which is what the column has to say
  for (int row = 0; row < 100; ++row) rare += fmt::format("0,{}\n", row);
  EXPECT_EQ(said_of(rare, {.target = "y"}), "");
  EXPECT_THAT(message_of<DataError>([&] { TableSchema::fit(table_of(column("1e300")), {.target = "y"}); }),
              AllOf(HasSubstr("column 'x'"), HasSubstr("1e+300")));
}

// As categories they would be learnt as noise, each by itself.
TEST(ColumnWarnings, NumbersWithinLettersAreSaid) {
  const auto column = [](fmt::string_view form, int different) {
    std::string text = "x,y\n";
    for (int row = 0; row < 24; ++row)
      text += fmt::format("{},{}\n", fmt::format(fmt::runtime(form), 1 + row % different), row);
    return text;
  };
  for (const auto& [form, shown] : {std::pair{"{} km", "as '1 km' is"},
                                    {"2024-01-{:02}", "as '2024-01-01' is"},
                                    {"{:02}:30", "as '01:30' is"},
                                    {"({})", "as '(1)' is"},
                                    {"-{}.5h", "as '-1.5h' is"},
                                    {"\u2212{}", "numbers within the same letters"}}) {
    const std::string said = said_of(column(form, 12), {.target = "y"});
    EXPECT_THAT(said, AllOf(HasSubstr("column 'x': 24 of its 24 values are numbers within the same letters"),
                            HasSubstr(shown), HasSubstr("the 12 different ones"), HasSubstr("(categories)")))
        << form;
    EXPECT_THAT(said_of(column(form, 12), {.target = "y", .categories = {"x"}}),
                Not(HasSubstr("within the same letters")));
    EXPECT_THAT(said_of(column(form, 9), {.target = "y"}), Not(HasSubstr("within the same letters")))
        << "so few may be names";
  }
  EXPECT_THAT(said_of(column("{:x}", 24), {.target = "y", .categories = {"x"}}),
              Not(HasSubstr("within the same letters")));
}

// 1.234 is 1234 to who writes 999 beside it.
TEST(ColumnWarnings, AMarkBetweenThousandsThatIsReadAsADecimalMarkIsSaid) {
  const std::string said = said_of("x,y\n999,1\n12,2\n-1.234,3\n10.500,4\n", {.target = "y"});
  EXPECT_THAT(said,
              AllOf(HasSubstr("line 4, column 'x': '-1.234' is read as a number near -1, and not as -1234"),
                    HasSubstr("2 of the column's numbers have '.' and three digits behind it"),
                    HasSubstr("the other 2 are whole ones below 1000"), HasSubstr("(numbers)")));
  EXPECT_EQ(said_of("x,y\n999,1\n1.234,2\n3,3\n", {.target = "y", .numbers = {"x"}}), "");
  EXPECT_THAT(said_of("x,y\n1,999\n5,1.234\n3,3\n", {.target = "y"}), HasSubstr("line 3, column 'y'"));
  for (const char* other : {"1.234,1\n2.345,2\n3.456,3\n",  // all with three digits
                            "1.234,1\n2.5,2\n3,3\n", "1.234,1\n2000,2\n3,3\n", "0.125,1\n2,2\n3,3\n",
                            "1.234,1\n1e3,2\n3,3\n", "1.2345,1\n2,2\n3,3\n", "1234.567,1\n2,2\n3,3\n"})
    EXPECT_EQ(said_of(std::string("x,y\n") + other, {.target = "y"}), "") << other;
}

// Taken as categories they would be learnt as noise.
TEST(ColumnWarnings, NumbersAsPeopleWriteThemAreNoCategories) {
  const auto refused = [](const std::string& cells, TableOptions options = {.target = "y"}) {
    return message_of<DataError>(
        [&] { TableSchema::fit(data::parse_csv_table(cells, ';', "t.csv"), options); });
  };
  EXPECT_THAT(refused("x;y\n1,342.0;1\n2,100.5;2\n"),
              AllOf(HasSubstr("line 2, column 'x': '1,342.0' is a number with separators between thousands"),
                    HasSubstr("write plain numbers, 1342.0"), HasSubstr("(categories)")));
  EXPECT_THAT(refused("x;y\n12.3%;1\n2%;2\n"), AllOf(HasSubstr("a percent sign"), HasSubstr("12.3")));
  EXPECT_THAT(refused("x;y\n$5;1\n$1,200.50;2\n"), HasSubstr("a currency"));
  EXPECT_THAT(refused("x;y\n3,5;1\n12,25;2\n"), HasSubstr("the decimal mark ','"));
  EXPECT_THAT(refused("x;y\n1'000;1\n12'000'000;2\n"), HasSubstr("1000"));
  EXPECT_THAT(refused("x;y\n1\u00a0000;1\n12\u00a0000;2\n"), HasSubstr("1000"));
  EXPECT_THAT(refused("x;y\n-1.234,5;1\n2;2\n", {.target = "y", .decimal = ','}), HasSubstr("-1234,5"));
  EXPECT_THAT(refused("x;y\n1.234,50;1\n2.000.000,5;2\n"),
              AllOf(HasSubstr("the decimal mark ','"), HasSubstr("say so (decimal)")));
  // The mark of the decimals, which a number has once.
  EXPECT_THAT(refused("x;y\n1.234.567;1\n2.000.000;2\n"),
              AllOf(HasSubstr("separators between thousands"), HasSubstr("write plain numbers, 1234567")));
  EXPECT_THAT(refused("x;y\n-1,234,567;1\n2,000,000;2\n", {.target = "y", .decimal = ','}),
              HasSubstr("write plain numbers, -1234567"));
  EXPECT_THAT(refused("x;y\n1\u200b;1\n2\u200b;2\n3;3\n"),
              AllOf(HasSubstr("'1\\u{200b}' is a number with"), HasSubstr("that nobody sees"),
                    HasSubstr("write plain numbers, 1")));
  EXPECT_THAT(refused("x;y\n5;1\n6;2\n7;3\n1,000;4\n"), HasSubstr("'1,000' is a number with"));
  // The target of a regression.
  EXPECT_THAT(refused("x;y\n1;1,000\n2;2,000\n"), HasSubstr("'1,000' is a number with"));
  // Words with digits are words, and what is said to be categories is.
  for (const char* text : {"x;y\n2020-01-05;1\n2021-02-03;2\n", "x;y\n12:30;1\n1:15;2\n", "x;y\nA1;1\n2B;2\n",
                           "x;y\n10.0.0.1;1\n10.0.0.2;2\n", "x;y\n1/2;1\n3/4;2\n", "x;y\n5-10;1\n10-20;2\n",
                           "x;y\n1,23,456;1\n1,2,3;2\n"})
    EXPECT_EQ(TableSchema::fit(data::parse_csv_table(text, ';', "t.csv"), {.target = "y"}).features(), 2)
        << text;
  EXPECT_EQ(TableSchema::fit(data::parse_csv_table("x;y\n2%;1\n3%;2\n", ';', "t.csv"),
                             {.target = "y", .categories = {"x"}})
                .features(),
            2);
}

// Each zero was erased by itself, in each comparison of two numbers that are equal as float64.
TEST(ExactDigits, OfManyZerosAreFoundSoon) {
  const std::string number = "0." + std::string(600'000, '0') + "1e600018";
  const std::clock_t begin = std::clock();  // of this process alone
  for (int time = 0; time < 20; ++time)
    ASSERT_EQ(internal::exact_digits(number, '.'), internal::exact_digits("100000000000000000", '.'));
  EXPECT_LT(std::clock() - begin, 20 * CLOCKS_PER_SEC);
  EXPECT_EQ(internal::exact_digits("0", '.'), "");
}

}  // namespace
}  // namespace mox
