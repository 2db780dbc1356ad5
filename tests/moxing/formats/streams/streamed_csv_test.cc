// CSV files that are read where they lie in an object store: what the same text on a disk gives, and the same
// errors, wherever its ranges end and whatever happens on the way.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "moxing/file/streams/streamed_file.h"
#include "moxing/formats/internal/csv/csv_blocks.h"
#include "runtime/base/error.h"
#include "tests/moxing/file/store_fixture.h"
#include "tests/support/message_of.h"

namespace mox::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing_store::Fault;

constexpr const char* kUrl = "s3://bucket/t.csv";

// All that a table holds, or the error.
std::string table_or_error(const std::function<CsvTable()>& read) {
  try {
    const CsvTable table = read();
    std::string all = fmt::format("{:08x}", table.checksum());
    for (const std::string_view name : table.columns()) all += fmt::format(" [{}]", name);
    for (int64_t row = 0; row < table.rows(); ++row) {
      all += fmt::format("\n{}:", table.line(row));
      for (size_t c = 0; c < table.columns().size(); ++c) all += fmt::format(" [{}]", table.cell(row, c));
    }
    return all;
  } catch (const Error& error) {
    return error.what();
  }
}

std::string numbers_or_error(const std::function<Array()>& read) {
  try {
    const Array array = read();
    return to_string(array.shape()) + std::string(reinterpret_cast<const char*>(array.data()), array.bytes());
  } catch (const Error& error) {
    return error.what();
  }
}

// Quotes, line ends of all kinds and characters of one to four bytes, so that the ends of blocks and ranges
// fall into each.
std::string varied_table(size_t bytes) {
  std::string text = "\xef\xbb\xbfname,\"the \"\"city\"\"\",n\r\n";
  const std::vector<std::string> names = {"Ann", "\"B, b\"", "Müller", "\"a\"\"€\r\nb\"", "\xf0\x9f\x98\x80",
                                          " x ", "\"\n\""};
  const std::vector<std::string> ends = {"\n", "\r\n", "\r", "\n\n", "\r\n  \r\n"};
  for (size_t row = 0; text.size() < bytes; ++row)
    text += names[row % names.size()] + "," + names[row / 3 % names.size()] + "," + std::to_string(row) +
            ends[row / 2 % ends.size()];
  return text + "last,,";
}

std::string numbers_text(size_t bytes) {
  std::string text = "a,b\n";
  for (size_t row = 0; text.size() < bytes; ++row)
    text += fmt::format("{},\"-{}.5\"{}", row, row % 1000,
                        row % 3 == 0   ? "\r\n"
                        : row % 3 == 1 ? "\n"
                                       : "\r");
  return text + "1,2";
}

class StreamedCsv : public testing::Test {
 protected:
  StreamedCsv() {
    file::set_stream_memory(1);  // what another test has read leaves
    file::set_stream_memory(int64_t{64} << 20);
  }
  ~StreamedCsv() override { file::set_stream_memory(int64_t{256} << 20); }

  void make_faulty() {
    store_.proxy.set_plan([](const std::string&, int64_t number) -> testing_store::Happening {
      if (number % 3 == 1) return {Fault::kResetInAnswer, 0.9};
      if (number % 7 == 3) return {Fault::kStatus503};
      return {};
    });
  }
  // When this many ranges have been asked for, the object becomes another one.
  void change_at(int64_t range, const std::string& content) {
    store_.proxy.set_plan([=, this](const std::string& operation, int64_t number) {
      if (operation == "GetObject" && number == range) store_.server.put("bucket", "t.csv", content);
      return testing_store::Happening{};
    });
  }

  file::StoreFixture store_;
};

TEST_F(StreamedCsv, TablesAreThoseOfTheTextOnADisk) {
  const std::string text = varied_table(3 << 20);
  const std::string whole = table_or_error([&] { return parse_csv_table(text, ',', kUrl); });
  ASSERT_THAT(whole.substr(0, 100), HasSubstr("[the \"city\"]"));
  store_.server.put("bucket", "t.csv", text);
  make_faulty();
  EXPECT_TRUE(whole == table_or_error([] { return read_csv_table(kUrl); }));
  for (const internal::CsvBlocks& blocks :
       std::vector<internal::CsvBlocks>{{.bytes = 10'007, .ahead = 1},
                                        {.bytes = 300'007, .ahead = 1 << 20},
                                        {.bytes = 8 << 20, .ahead = 2 << 20}})
    EXPECT_TRUE(whole ==
                table_or_error([&] { return internal::read_csv_table_in_blocks(kUrl, ',', blocks); }))
        << blocks.bytes;
  EXPECT_GT(store_.proxy.faults_made(), 10);
}

TEST_F(StreamedCsv, NumbersAreThoseOfTheTextOnADisk) {
  const std::string text = numbers_text(3 << 20);
  const CsvOptions options{.header = true};
  const std::string whole = numbers_or_error([&] { return parse_csv(text, options, kUrl); });
  ASSERT_GT(whole.size(), size_t{1} << 20);
  store_.server.put("bucket", "t.csv", text);
  make_faulty();
  EXPECT_TRUE(whole == numbers_or_error([&] { return read_csv(kUrl, options); }));
  for (const internal::CsvBlocks& blocks :
       std::vector<internal::CsvBlocks>{{.bytes = 10'007, .ahead = 1},
                                        {.bytes = 300'007, .ahead = 1 << 20},
                                        {.bytes = 8 << 20, .ahead = 2 << 20}})
    EXPECT_TRUE(whole ==
                numbers_or_error([&] { return internal::read_csv_in_blocks(kUrl, options, blocks); }))
        << blocks.bytes;
  EXPECT_GT(store_.proxy.faults_made(), 10);
}

TEST_F(StreamedCsv, ErrorsAreThoseOfTheTextOnADisk) {
  const std::string large = varied_table(400'000), numbers = numbers_text(400'000);
  for (const std::string& text :
       std::vector<std::string>{"", "\n", "a,b",
                                "\xff\xfe"
                                "a",
                                "\x1f\x8b\x08", "PK\x03\x04", large + "\n1,2\n" + large, large + "\n\"1,2",
                                large + "\n\"x\"y,1,2\n", large + "\n\xfc,1,2\n" + large,
                                // What is no UTF-8 is told first, though it comes later.
                                large + "\n1,2\n" + large + "\n\xfc", "a;b\n1;2\n", "sep=;\na;b\n"}) {
    store_.server.put("bucket", "t.csv", text);
    const internal::CsvBlocks blocks{.bytes = 50'021, .ahead = 1};
    EXPECT_EQ(
        table_or_error([&] { return parse_csv_table(text, ',', kUrl); }).substr(0, 300),
        table_or_error([&] { return internal::read_csv_table_in_blocks(kUrl, ',', blocks); }).substr(0, 300));
  }
  for (const std::string& text : std::vector<std::string>{
           "", "x\n\xff\xfe", "\xff\xfe\n", numbers + "\n1,2,3\n", numbers + "\n1,x\n" + numbers}) {
    store_.server.put("bucket", "t.csv", text);
    const internal::CsvBlocks blocks{.bytes = 50'021, .ahead = 1};
    const CsvOptions options{.header = true};
    EXPECT_EQ(numbers_or_error([&] { return parse_csv(text, options, kUrl); }),
              numbers_or_error([&] { return internal::read_csv_in_blocks(kUrl, options, blocks); }));
  }
  EXPECT_THROW(read_csv_table("s3://bucket/absent.csv"), NotFound);
  EXPECT_THROW(read_csv_table(kUrl, '"'), InvalidArgument);
}

TEST_F(StreamedCsv, ColumnsAreFoundInTheBeginOfTheFile) {
  store_.server.put("bucket", "t.csv", numbers_text(3 << 20));
  EXPECT_EQ(csv_column(kUrl, "b"), 1);
  EXPECT_EQ(store_.server.requests_of("GetObject"), 1);
  EXPECT_LT(store_.proxy.bytes_to_clients(), 200'000);
  store_.server.put("bucket", "t.csv", std::string(300'000, '\n') + "a,b\n1,2\n");
  EXPECT_EQ(csv_column(kUrl, "b"), 1);
}

TEST_F(StreamedCsv, AFileThatIsReplacedMeanwhileIsRefused) {
  const internal::CsvBlocks blocks{.bytes = 100'000, .ahead = 1};
  for (const bool as_table : {true, false}) {
    store_.server.put("bucket", "t.csv", numbers_text(2 << 20));
    const std::string before = file::stat(kUrl).etag;
    change_at(5, numbers_text((2 << 20) + 1000));
    const std::string refusal = message_of<IoError>([&] {
      if (as_table)
        internal::read_csv_table_in_blocks(kUrl, ',', blocks);
      else
        internal::read_csv_in_blocks(kUrl, {.header = true}, blocks);
    });
    EXPECT_THAT(refusal, AllOf(HasSubstr("'s3://bucket/t.csv' has changed"), HasSubstr(before),
                               HasSubstr(file::stat(kUrl).etag)));
    store_.proxy.set_plan({});
  }
}

}  // namespace
}  // namespace mox::data
