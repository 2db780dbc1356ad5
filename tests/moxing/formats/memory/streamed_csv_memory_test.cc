// Of a CSV file in an object store a few blocks of its text are in memory at a time, and what they hold.
#include <gtest/gtest.h>

#include <string>

#include "moxing/file/streams/streamed_file.h"
#include "moxing/formats/internal/csv/csv_blocks.h"
#include "tests/fuzz/harness/heap_peak.h"
#include "tests/moxing/file/store_fixture.h"

namespace mox::data {
namespace {

// Of much text and little content.
std::string padded_table(size_t bytes) {
  std::string text = "a,b\n";
  for (int64_t row = 0; text.size() < bytes; ++row)
    text += std::to_string(row) + "," + std::string(400, ' ') + std::to_string(row % 7) + "\n";
  return text;
}

TEST(StreamedCsvMemory, IsThatOfAWindow) {
  constexpr size_t kMebibyte = 1 << 20;
  file::StoreFixture store;
  file::set_stream_memory(int64_t{64} << 20);
  store.server.put("bucket", "t.csv", padded_table(48 * kMebibyte));
  const internal::CsvBlocks blocks{.bytes = kMebibyte, .ahead = 2 * kMebibyte};
  // What the server of this process has to send is in memory, too, and lies there twice for a while.
  fuzz::restart_heap_peak();
  const CsvTable table = internal::read_csv_table_in_blocks("s3://bucket/t.csv", ',', blocks);
  EXPECT_LT(fuzz::heap_peak(), 24 * kMebibyte);
  EXPECT_GT(table.rows(), 120'000);
  EXPECT_EQ(table.cell(100'000, 0), "100000");
  fuzz::restart_heap_peak();
  const Array numbers = internal::read_csv_in_blocks("s3://bucket/t.csv", {.header = true}, blocks);
  EXPECT_LT(fuzz::heap_peak(), 24 * kMebibyte);
  EXPECT_EQ(numbers.shape()[0], table.rows());
}

}  // namespace
}  // namespace mox::data
