// What is learnt of a table, and how other tables are read by it: never another meaning in silence.
#include "moxing/tabular/table_schema.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "moxing/tabular/table_dataset.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/data/pipeline.h"
#include "tests/support/message_of.h"

namespace mox {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;

data::CsvTable parse(const std::string& text) { return data::parse_csv_table(text, ',', "t.csv"); }

constexpr const char* kTraining =
    "id,size,city,rooms,price\n"
    "a,1,Bern,2,10\n"
    "b,3,Ulm,2,20\n"
    "c,NA,Bern,3,30\n"
    "d,5,Ulm,5,40\n";

TableOptions options() { return {.target = "price", .id = "id"}; }
TableSchema fitted() { return TableSchema::fit(parse(kTraining), options()); }

std::vector<float> row(const Array& features, int64_t index) {
  const auto values = features.values<float>();
  const auto width = static_cast<size_t>(features.shape()[1]);
  return {values.begin() + index * features.shape()[1],
          values.begin() + index * features.shape()[1] + static_cast<int64_t>(width)};
}

// The error with which a table like the training's is refused.
template <typename Expected = DataError>
std::string refusal(const std::string& text, UnseenValue unseen = UnseenValue::kError) {
  return message_of<Expected>([&] { table_features(fitted(), parse(text), unseen); });
}

TEST(TableSchema, NormalisesNumbersAndSpreadsCategories) {
  const TableSchema schema = fitted();
  EXPECT_THAT(schema.feature_names(), ElementsAre("size", "size missing", "city=Bern", "city=Ulm", "rooms"));
  EXPECT_EQ(schema.columns()[0].moments.mean, 3);
  EXPECT_NEAR(schema.columns()[0].moments.deviation, std::sqrt(8.0 / 3), 1e-15);
  const Array features = table_features(schema, parse(kTraining));
  EXPECT_THAT(row(features, 0),
              ElementsAre(FloatEq(-2 / std::sqrt(8.0F / 3)), 0, 1, 0, FloatEq(-1 / std::sqrt(1.5F))));
  EXPECT_THAT(row(features, 2), ElementsAre(0, 1, 1, 0, 0));
}

template <typename T>
concept GivesColumns = requires(T&& owner) {
  std::forward<T>(owner).columns();
};
template <typename T>
concept GivesCells = requires(T&& table) {
  std::forward<T>(table).cell(0, 0);
};
static_assert(GivesColumns<const TableSchema&> && GivesColumns<data::CsvTable&> &&
              GivesCells<data::CsvTable&>);
static_assert(!GivesColumns<TableSchema> && !GivesColumns<data::CsvTable> && !GivesCells<data::CsvTable>,
              "views of what is gone");

TEST(TableSchema, IsMadeOfTheTrainingPartAlone) {
  const std::vector<int64_t> part = {0, 1};
  const TableSchema schema = TableSchema::fit(parse(kTraining), options(), part);
  EXPECT_EQ(schema.columns()[0].moments, (TableMoments{2, 1}));
  EXPECT_FALSE(schema.columns()[0].was_missing);
  EXPECT_EQ(schema.target_moments(), (TableMoments{15, 5}));
}

TEST(TableSchema, ReadsColumnsByNameInAnyOrder) {
  const Array features = table_features(fitted(), parse("more,rooms,city,size,id\nx,3,Ulm,3,a\n"));
  EXPECT_THAT(row(features, 0), ElementsAre(0, 0, 0, 1, 0));
}

TEST(TableSchema, RefusesWhatTheTrainingDidNotHave) {
  EXPECT_THAT(
      refusal("size,city,rooms\n1,Bern,2\n1,Bren,2\n"),
      AllOf(HasSubstr("line 3, column 'city'"), HasSubstr("is 'Bern' meant?"), HasSubstr("2 categories")));
  EXPECT_THAT(refusal("size,city,rooms\nsmall,Bern,2\n"),
              AllOf(HasSubstr("column 'size': 'small' is no number"), HasSubstr("one of numbers")));
  EXPECT_THAT(refusal("size,city,rooms\n1,Bern,\n"),
              AllOf(HasSubstr("column 'rooms': the value is missing"), HasSubstr("in training none was")));
  EXPECT_THAT(refusal<NotFound>("size,town,rooms\n1,Bern,2\n"), HasSubstr("has no column 'city'"));
  EXPECT_THAT(refusal<NotFound>("a,Bern,2\nb,Ulm,3\n"), HasSubstr("put a line of names before it"));
  EXPECT_THAT(refusal("size,city,rooms\n1e300,Bern,2\n"), HasSubstr("too far from the mean"));
}

TEST(TableSchema, TakesTheUnseenAsMissingWhereItIsAsked) {
  const Array features =
      table_features(fitted(), parse("size,city,rooms\n3,Rome,3\n,NA,\n"), UnseenValue::kMissing);
  EXPECT_THAT(row(features, 0), ElementsAre(0, 0, 0, 0, 0));
  EXPECT_THAT(row(features, 1), ElementsAre(0, 1, 0, 0, 0));
  EXPECT_THAT(refusal("size,city,rooms\nsmall,Bern,2\n", UnseenValue::kMissing), HasSubstr("is no number"));
}

TEST(TableSchema, AsksWhereAColumnIsNeitherNumbersNorCategories) {
  const auto fit = [](const std::string& text, TableOptions options) {
    return message_of<DataError>([&] { TableSchema::fit(parse(text), options); });
  };
  const std::string mixed = "x,y\n1,1\n2,2\n3,3\nold,4\n";
  EXPECT_THAT(fit(mixed, {.target = "y"}), AllOf(HasSubstr("line 5, column 'x': 'old' is no number"),
                                                 HasSubstr("3 of the column's 4 values")));
  EXPECT_THAT(fit(mixed, {.target = "y", .numbers = {"x"}}), HasSubstr("'old' is no number"));
  EXPECT_EQ(TableSchema::fit(parse(mixed), {.target = "y", .categories = {"x"}}).features(), 4);
  EXPECT_EQ(TableSchema::fit(parse(mixed), {.target = "y", .missing_words = {"OLD"}}).features(), 2);
  EXPECT_THAT(fit("x,y\n,1\n,2\n", {.target = "y"}), HasSubstr("column 'x' of 't.csv' has no value"));
  EXPECT_THAT(fit("x,y\n1,1\n2,\n", {.target = "y"}),
              AllOf(HasSubstr("line 3"), HasSubstr("target is missing")));
  EXPECT_THAT(fit("x,y\n1,a\n2,b\n", {.target = "y"}), HasSubstr("is it a classification?"));
  EXPECT_THAT(fit("x,y\n1,a\n2,a\n", {.target = "y", .task = TableTask::kClassification}),
              HasSubstr("one class alone"));
  EXPECT_THAT(fit("x,y\na,1\nb,2\nc,2\n", {.target = "y", .largest_vocabulary = 2}),
              HasSubstr("3 different values, more than 2"));
  EXPECT_THAT(fit("y\n1\n2\n", {.target = "y"}), HasSubstr("no column to learn from"));
  EXPECT_THAT(
      message_of<InvalidArgument>([&] { TableSchema::fit(parse(mixed), {.target = "y", .id = "y"}); }),
      HasSubstr("'y' cannot be the target and the name of the rows"));
  EXPECT_THAT(message_of<InvalidArgument>([&] {
                TableSchema::fit(parse(mixed), {.target = "y", .categories = {"x"}, .largest_vocabulary = 0});
              }),
              HasSubstr("largest_vocabulary must be at least 1"));
}

TEST(TableSchema, AConstantColumnIsZeroAndNotInfinite) {
  const TableSchema schema = TableSchema::fit(parse("x,z,y\n0.1,1,1\n0.1,2,2\n0.1,3,3\n"), {.target = "y"});
  EXPECT_EQ(schema.columns()[0].moments, (TableMoments{0.1, 1}));
  EXPECT_EQ(table_features(schema, parse("x,z\n0.1,2\n")).values<float>()[0], 0.0F);
}

// Its weight is the one that the network began with.
TEST(TableSchema, AnotherValueInAConstantColumnIsNoQuestionToTheModel) {
  const TableSchema fitted = TableSchema::fit(parse("x,z,y\n7,1,1\n7.0,2,2\n,2,3\n"), {.target = "y"});
  const TableSchema schema = TableSchema::from_json(fitted.to_json(), "test");
  EXPECT_EQ(schema, fitted);
  EXPECT_THAT(schema.feature_names(), ElementsAre("x", "x missing", "z"));
  EXPECT_THAT(message_of<DataError>([&] { table_features(schema, parse("x,z\n7,1\n9,1\n")); }),
              AllOf(HasSubstr("line 3, column 'x': '9'"), HasSubstr("had 7"), HasSubstr("unseen: missing")));
  const Array features = table_features(schema, parse("x,z\n9,2\n7e0,2\n"), UnseenValue::kMissing);
  EXPECT_EQ(row(features, 0), row(features, 1));
}

TEST(TableSchema, ARegressionNeedsMoreThanOneValue) {
  EXPECT_THAT(message_of<DataError>([] { TableSchema::fit(parse("x,y\n1,5\n2,5.0\n"), {.target = "y"}); }),
              HasSubstr("column 'y' has one value alone, 5"));
}

TEST(TableSchema, SmallNumbersHaveTheirDeviation) {
  for (const char* unit : {"e-100", "e-200", "e-300"}) {
    const auto cell = [&](const char* digit) { return std::string(digit) + unit; };
    const auto table =
        parse("x,y\n" + cell("1") + ",1\n" + cell("2") + ",2\n" + cell("3") + ",3\n" + cell("4") + ",4\n");
    const Array features = table_features(TableSchema::fit(table, {.target = "y"}), table);
    for (int64_t i = 0; i < 4; ++i)
      EXPECT_NEAR(features.values<float>()[static_cast<size_t>(i)],
                  (static_cast<double>(i) - 1.5) / std::sqrt(1.25), 1e-6)
          << unit;
  }
}

// Identifiers of 19 digits are four numbers of float64 in a thousand.
TEST(TableSchema, LargeWholeNumbersAreOneClassOnlyIfAllDigitsAre) {
  const auto table = parse(
      "x,y\n1,1234567890123456781\n2,1234567890123456782\n3,+1234567890123456781.0\n4,3\n"
      "5,1234567890123456781\n");
  const TableOptions options{.target = "y", .task = TableTask::kClassification};
  const TableSchema schema = TableSchema::fit(table, options);
  EXPECT_THAT(schema.class_names(), ElementsAre("3", "1234567890123456781", "1234567890123456782"));
  const auto labels = [&](const std::string& cells) {
    Pipeline pipeline(table_dataset(schema, parse("x,y\n" + cells)).batch(3), {});
    Batch batch;
    pipeline.next(&batch);
    const auto values = batch.components[1].values<int32_t>();
    return std::vector<int32_t>(values.begin(), values.end());
  };
  EXPECT_THAT(labels("1,1234567890123456782\n1,1234567890123456781\n1,1234567890123456781.00\n"),
              ElementsAre(2, 1, 1));
  EXPECT_THAT(message_of<DataError>([&] { table_dataset(schema, parse("x,y\n1,1234567890123456783\n")); }),
              HasSubstr("'1234567890123456783' is none of the 3 classes"));
  EXPECT_THAT(message_of<DataError>([&] {
                TableSchema::fit(parse("x,y\n1700000000000000001,1\n1700000000000000002,2\n"),
                                 {.target = "y"});
              }),
              AllOf(HasSubstr("line 3, column 'x'"), HasSubstr("the same number in float64")));
}

TEST(TableSchema, NumbersOfAnotherUnitAreSaid) {
  const TableSchema schema = TableSchema::fit(parse("x,y\n70,1\n80,2\n90,3\n"), {.target = "y"});
  set_log_level(LogLevel::kInfo);  // other tests may have changed it
  const auto said_of = [&](const std::string& cells) {
    testing::internal::CaptureStderr();
    table_features(schema, parse("x\n" + cells));
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(said_of("75\n75000\n81000\n"),
              AllOf(HasSubstr("2 values of column 'x' (such as 75000) are more than 100 deviations"),
                    HasSubstr("80, deviation 8.16")));
  EXPECT_EQ(said_of("75\n700\n"), "");
}

// pandas writes -999 as -999.0 where another cell of the column has a fraction, or none.
TEST(TableSchema, AMissingWordThatIsANumberIsThatNumberInAnySpelling) {
  const TableSchema fitted =
      TableSchema::fit(parse("x,y\n1,1\n2,2\n-999,3\n"), {.target = "y", .missing_words = {"-999"}});
  for (const TableSchema& schema : {fitted, TableSchema::from_json(fitted.to_json(), "test")})
    for (const char* cell : {"-999", "-999.0", "-9.99e2"})
      EXPECT_THAT(row(table_features(schema, parse(std::string("x\n") + cell + "\n")), 0), ElementsAre(0, 1))
          << cell;
  EXPECT_FALSE(fitted.is_missing("-999.5"));
}

TEST(TableSchema, OrdersClassesOfNumbersAsNumbers) {
  const TableSchema schema = TableSchema::fit(parse("x,y\n1,10\n2,9\n3,10\n4,1\n"),
                                              {.target = "y", .task = TableTask::kClassification});
  EXPECT_THAT(schema.class_names(), ElementsAre("1", "9", "10"));
  EXPECT_THAT(message_of<DataError>([&] { table_dataset(schema, parse("x,y\n1,8\n")); }),
              AllOf(HasSubstr("'8' is none of the 3 classes"), HasSubstr("line 2")));
}

// pandas writes a column of whole numbers as floats once a value is missing.
TEST(TableSchema, EqualNumbersAreOneClass) {
  const auto table = parse("x,y\n1,0\n2,0.0\n3,1.0\n4,1\n5,1.0\n6,0\n");
  const TableSchema schema = TableSchema::fit(table, {.target = "y", .task = TableTask::kClassification});
  EXPECT_THAT(schema.class_names(), ElementsAre("0", "1.0"));
  Pipeline pipeline(table_dataset(schema, parse("x,y\n1,1\n1,0.00\n1,1e0\n")).batch(3), {});
  Batch batch;
  ASSERT_TRUE(pipeline.next(&batch));
  EXPECT_THAT(batch.components[1].values<int32_t>(), ElementsAre(1, 0, 1));
  EXPECT_THAT(message_of<DataError>([&] { table_dataset(schema, parse("x,y\n1,2\n")); }),
              HasSubstr("'2' is none of the 2 classes"));
  // Words that begin like numbers are words.
  const TableSchema words = TableSchema::fit(parse("x,y\n1,0\n2,0.0\n3,none\n"),
                                             {.target = "y", .task = TableTask::kClassification});
  EXPECT_EQ(words.class_names().size(), 3U);
}

TEST(TableSchema, ComesBackFromItsText) {
  for (const TableTask task : {TableTask::kRegression, TableTask::kClassification}) {
    TableOptions given = options();
    given.task = task;
    given.training_part = "a part";
    const TableSchema schema = TableSchema::fit(parse(kTraining), given);
    EXPECT_EQ(TableSchema::from_json(schema.to_json(), "text"), schema);
  }
  const std::string text = fitted().to_json();
  for (const auto& [from, to] : {std::pair{"\"version\": 1", "\"version\": 2"},
                                 {"\"deviation\": ", "\"deviation\": -"},
                                 {"\"Ulm\"", "\"Alm\""},
                                 {"\"city\"", "\"size\""},
                                 {"\"kind\": \"number\"", "\"kind\": \"text\""}}) {
    std::string changed = text;
    ASSERT_NE(changed.find(from), std::string::npos) << from;
    changed.replace(changed.find(from), std::string(from).size(), to);
    EXPECT_THAT(message_of<DataError>([&] { TableSchema::from_json(changed, "here"); }),
                HasSubstr("'here' holds no schema"));
  }
}

// Texts of a few letters take the most for their size, and what a run writes it reads again.
TEST(TableSchema, ComesBackWithThousandsOfShortNames) {
  std::string text = "y,size,city\n";
  for (int i = 0; i < 3000; ++i) text += fmt::format("{0:x},{1},{0:o}\n", i, i % 7);
  TableOptions given = {.target = "y", .task = TableTask::kClassification};
  given.largest_vocabulary = 5000;
  const TableSchema schema = TableSchema::fit(parse(text), given);
  EXPECT_EQ(TableSchema::from_json(schema.to_json(), "text"), schema);
}

TEST(TableDataset, GivesFeaturesTargetsAndNames) {
  const TableSchema schema = fitted();
  const std::vector<int64_t> rows = {3, 0};
  Pipeline pipeline(table_dataset(schema, parse(kTraining), rows).batch(2), {.sample_names = true});
  Batch batch;
  ASSERT_TRUE(pipeline.next(&batch));
  EXPECT_THAT(batch.names, ElementsAre("d", "a"));
  EXPECT_EQ(row(batch.components[0], 1), row(table_features(schema, parse(kTraining)), 0));
  EXPECT_THAT(batch.components[1].values<float>(),
              ElementsAre(FloatEq(15 / std::sqrt(125.0F)), FloatEq(-15 / std::sqrt(125.0F))));
}

TEST(TableDataset, NamesRowsByFileAndLineWithoutAnId) {
  const TableSchema schema = TableSchema::fit(parse("x,y\n1,1\n2,2\n"), {.target = "y"});
  Pipeline pipeline(
      table_dataset(schema, data::parse_csv_table("x\n\n7\n8\n", ',', "a/b/new.csv"), {.with_target = false})
          .batch(2),
      {.sample_names = true});
  Batch batch;
  ASSERT_TRUE(pipeline.next(&batch));
  EXPECT_EQ(batch.components.size(), 1u);
  EXPECT_THAT(batch.names, ElementsAre("new.csv:3", "new.csv:4"));
}

}  // namespace
}  // namespace mox
