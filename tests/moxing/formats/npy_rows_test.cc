// Rows of .npy files that are read as they are used: those of the array that the file holds, whatever the
// order, or an error where the file is another one meanwhile.
#include "moxing/formats/internal/npy_rows.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "moxing/formats/npy.h"
#include "runtime/base/error.h"
#include "runtime/data/pipeline.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_directory.h"

namespace mox::data {
namespace {

using internal::NpyRows;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string npy_file(std::string_view code, std::string_view shape, const std::string& values,
                     std::string_view fortran = "False") {
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}\n", code, fortran, shape);
  std::string file = "\x93NUMPY";
  file += '\1';
  file += '\0';
  file += static_cast<char>(header.size() & 0xff);
  file += static_cast<char>(header.size() >> 8);
  return file + header + values;
}

std::string pattern(size_t bytes, unsigned mask = 0x7f) {
  std::string values(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) values[i] = static_cast<char>((i * i >> 5 ^ i) & mask);
  return values;
}

class NpyRowsTest : public testing::Test {
 protected:
  ~NpyRowsTest() override { set_npy_memory(before_); }

  static void set_memory(size_t bytes) { set_npy_memory(std::make_shared<MemoryBudget>(bytes)); }

  // Written to, as by another program a while later.
  static void change(const std::string& path, int64_t at, std::string_view bytes) {
    const auto time = std::filesystem::last_write_time(path);
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(at);
    file << bytes;
    file.close();
    std::filesystem::last_write_time(path, time + std::chrono::seconds(1));
  }

  const TemporaryDirectory directory_;

 private:
  const std::shared_ptr<MemoryBudget> before_ = npy_memory();
};

// Bytes of every row, in the order in which batches have them.
std::vector<std::string> rows_of(const Dataset& samples, int threads) {
  std::vector<std::string> rows;
  Pipeline pipeline(samples, {.seed = 3, .threads = threads});
  for (Batch batch; pipeline.next(&batch);) {
    const Array& all = batch.components[0];
    const size_t count = all.shape()[0], bytes = all.bytes() / count;
    for (size_t i = 0; i < count; ++i)
      rows.emplace_back(reinterpret_cast<const char*>(all.data()) + i * bytes, bytes);
  }
  return rows;
}

TEST_F(NpyRowsTest, AreThoseOfTheArray) {
  constexpr int kRows = 3001;  // some blocks of them
  struct Case {
    std::string code;
    size_t bytes;
    unsigned mask = 0x7f;
    std::string fortran = "False";
  };
  for (const Case& of : std::vector<Case>{{"<f4", 4},
                                          {">i4", 4},
                                          {"<u2", 2},
                                          {"<f2", 2},
                                          {"|b1", 1, 1},
                                          {"|u1", 1, 0xff},
                                          {"<f4", 4, 0x7f, "True"}}) {
    const std::string path =
        directory_.write("x.npy", npy_file(of.code, fmt::format("({}, 25, 8)", kRows),
                                           pattern(kRows * 200 * of.bytes, of.mask), of.fortran));
    const Dataset array = Dataset::from_arrays({read_npy(path)});
    // Of the larger files 3 MB hold a part.
    for (const size_t memory : {size_t{0}, size_t{3'000'000}, size_t{1} << 30})
      for (const int threads : {0, 2}) {
        set_memory(memory);
        const Dataset rows = npy({path});
        EXPECT_EQ(rows.describe(), array.describe());  // a run goes on with the cursor of the one before
        EXPECT_EQ(rows.signature(), array.signature());
        EXPECT_TRUE(rows_of(rows.batch(64), threads) == rows_of(array.batch(64), threads)) << of.code;
        EXPECT_TRUE(rows_of(rows.shuffle(kRows).batch(64), threads) ==
                    rows_of(array.shuffle(kRows).batch(64), threads))
            << of.code;
      }
  }
}

TEST_F(NpyRowsTest, OfNothingAreNone) {
  const std::string none = directory_.write("none.npy", npy_file("<f4", "(0, 5)", ""));
  const std::string empty = directory_.write("empty.npy", npy_file("<f4", "(3, 0)", ""));
  for (const size_t memory : {size_t{0}, size_t{1} << 30}) {
    set_memory(memory);
    EXPECT_EQ(rows_of(npy({none}).batch(2), 0).size(), 0u);
    EXPECT_EQ(rows_of(npy({empty}).batch(2), 0).size(), 3u);
  }
}

int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t pages = 0;
  file >> pages >> pages;
  return pages * ::sysconf(_SC_PAGESIZE);
}

TEST_F(NpyRowsTest, AreInMemoryAsFarAsTheyAreUsed) {
  constexpr int64_t kBytes = int64_t{1} << 30, kRow = 1 << 12;
  const std::string path =
      directory_.write("x.npy", npy_file("|u1", fmt::format("({}, {})", kBytes / kRow, kRow), ""));
  const auto header = std::filesystem::file_size(path);
  std::filesystem::resize_file(path, header + kBytes);  // a hole
  for (const size_t memory : {size_t{0}, size_t{4} << 30}) {
    set_memory(memory);
    const int64_t before = resident_bytes();
    Pipeline pipeline(npy({path}).skip(100'000).take(1000).batch(500), {.threads = 0});
    Batch batch;
    ASSERT_TRUE(pipeline.next(&batch));
    EXPECT_LT(resident_bytes() - before, int64_t{64} << 20);
  }
}

TEST_F(NpyRowsTest, OfAFileThatIsCutAreAnErrorThatNamesIt) {
  const std::string content = npy_file("|u1", "(4096, 1024)", pattern(4 << 20));
  for (const bool keeps : {false, true}) {
    const std::string path = directory_.write("cut.npy", content);
    NpyRows rows(path);
    if (keeps) rows.keep(std::make_shared<MemoryBudget>(size_t{1} << 30));
    std::vector<std::byte> row(1024);
    rows.read(7, row.data());
    const std::vector<std::byte> first = row;
    std::filesystem::resize_file(path, content.size() / 2);
    for (const int64_t lost : {1500, 4095})
      EXPECT_THAT(message_of<DataError>([&] { rows.read(lost, row.data()); }), HasSubstr("cut.npy'"));
    if (!keeps) continue;
    rows.read(7, row.data());  // in memory since before
    EXPECT_TRUE(row == first);
    EXPECT_EQ(std::memcmp(rows.view(7, 1)->data(), first.data(), first.size()), 0);
    EXPECT_THAT(message_of<DataError>([&] { rows.view(7, 4000); }), HasSubstr("cut.npy'"));
  }
}

TEST_F(NpyRowsTest, OfAFileThatIsWrittenToAreAnErrorThatNamesIt) {
  const std::string content = npy_file("|u1", "(4096, 1024)", pattern(4 << 20));
  for (const size_t memory : {size_t{0}, size_t{1} << 30}) {
    set_memory(memory);
    const std::string path = directory_.write("changed.npy", content);
    Pipeline pipeline(npy({path}).batch(2048), {.threads = 0, .prefetch_batches = 0});
    Batch batch;
    ASSERT_TRUE(pipeline.next(&batch));
    change(path, 3 << 20, "other");
    EXPECT_THAT(message_of<DataError>([&] { pipeline.next(&batch); }),
                AllOf(HasSubstr("changed.npy' was written to"), HasSubstr("rename it")));
  }
}

TEST_F(NpyRowsTest, OfAFileThatAnotherTookThePlaceOfAreTheOldOnes) {
  const std::string path = directory_.write("x.npy", npy_file("|u1", "(2, 3)", "abcdef"));
  for (const bool keeps : {false, true}) {
    NpyRows rows(directory_.write("x.npy", npy_file("|u1", "(2, 3)", "abcdef")));
    if (keeps) rows.keep(std::make_shared<MemoryBudget>(size_t{1} << 30));
    std::filesystem::rename(directory_.write("y.npy", npy_file("|u1", "(2, 3)", "ghijkl")), path);
    char row[3];
    rows.read(1, reinterpret_cast<std::byte*>(row));
    EXPECT_EQ(std::string_view(row, 3), "def");
  }
}

TEST_F(NpyRowsTest, OfTheSmallestFilesAreKept) {
  const std::string images = directory_.write("images.npy", npy_file("|u1", "(3, 4)", "aaaabbbbcccc"));
  const std::string labels = directory_.write("labels.npy", npy_file("|u1", "(3,)", "xyz"));
  set_memory(4);
  Pipeline pipeline(npy({images, labels}).batch(1), {.threads = 0, .prefetch_batches = 0});
  Batch batch;
  ASSERT_TRUE(pipeline.next(&batch));
  std::filesystem::resize_file(labels, 1);
  ASSERT_TRUE(pipeline.next(&batch));
  EXPECT_EQ(batch.components[0].values<uint8_t>()[3], 'b');
  EXPECT_EQ(batch.components[1].values<uint8_t>()[0], 'y');
  std::filesystem::resize_file(images, 1);
  EXPECT_THAT(message_of<DataError>([&] { pipeline.next(&batch); }), HasSubstr("images.npy'"));
}

// Images, shuffles and caches hold of the same.
TEST_F(NpyRowsTest, AreKeptAsFarAsTheBudgetHasRoom) {
  const std::string content = npy_file("|u1", "(4096, 1024)", pattern(4 << 20));
  const std::string path = directory_.write("x.npy", content);
  const auto budget = std::make_shared<MemoryBudget>(size_t{8} << 20);
  MemoryBudget::Share other(budget, MemoryBudget::Share::Of::kCache);
  other.resize(size_t{4} << 20);
  {
    NpyRows rows(path);
    rows.keep(budget);
    EXPECT_EQ(budget->room_to_grow(), size_t{2} << 20);  // nothing is read yet
    std::vector<std::byte> row(1024);
    for (int64_t i = 0; i < 4096; ++i) {
      rows.read(i, row.data());
      ASSERT_EQ(std::memcmp(row.data(), content.data() + content.size() - (4096 - i) * 1024, 1024), 0) << i;
    }
    EXPECT_EQ(budget->room_to_grow(), 0u);
    EXPECT_TRUE(rows.view(0, 2048));
    EXPECT_FALSE(rows.view(2047, 2));
    other.resize(0);
    EXPECT_TRUE(rows.view(0, 4096));
    EXPECT_EQ(budget->room_to_grow(), size_t{2} << 20);
  }
  EXPECT_EQ(budget->room_to_grow(), size_t{6} << 20);
}

TEST_F(NpyRowsTest, ThatCannotBeReadCountForNothing) {
  const std::string content = npy_file("|u1", "(4096, 1024)", pattern(4 << 20));
  const std::string path = directory_.write("cut.npy", content);
  const auto budget = std::make_shared<MemoryBudget>(size_t{8} << 20);
  NpyRows rows(path);
  rows.keep(budget);
  std::filesystem::resize_file(path, content.size() / 2);
  std::vector<std::byte> row(1024);
  for (int i = 0; i < 3; ++i) EXPECT_THROW(rows.read(4095, row.data()), DataError);
  EXPECT_EQ(budget->room_to_grow(), size_t{6} << 20);
}

TEST_F(NpyRowsTest, OfFortransOrderCountWhole) {
  const std::string path = directory_.write("x.npy", npy_file("|u1", "(2, 3)", "abcdef", "True"));
  const auto budget = std::make_shared<MemoryBudget>(100);
  set_npy_memory(budget);
  const Dataset rows = npy({path});
  EXPECT_EQ(budget->room_to_grow(), 75u - 6u);
}

// Others are not refused what they need then, and it is said.
TEST_F(NpyRowsTest, OfFortransOrderThatDoNotFitAreReadAllTheSame) {
  const std::string path = directory_.write("x.npy", npy_file("|u1", "(2, 3)", "abcdef", "True"));
  const auto budget = std::make_shared<MemoryBudget>(5);
  set_npy_memory(budget);
  testing::internal::CaptureStderr();
  const Dataset rows = npy({path});
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("x.npy' has its rows in Fortran's order"), HasSubstr("6 bytes")));
  EXPECT_EQ(budget->room_to_grow(), 4u);
  EXPECT_EQ(rows_of(rows.batch(1), 0), (std::vector<std::string>{"ace", "bdf"}));
}

TEST_F(NpyRowsTest, ThatAreNoBoolsAreRefusedWhereTheyAreRead) {
  const std::string content = npy_file("|b1", "(3, 2)", std::string("\0\1\1\1\0\2", 6));
  const NpyRows rows(directory_.write("b.npy", content));
  std::byte row[2];
  rows.read(1, row);
  EXPECT_THAT(message_of<DataError>([&] { rows.read(2, row); }),
              HasSubstr(fmt::format("b.npy', offset {}: a bool is neither 0 nor 1", content.size() - 1)));
}

}  // namespace
}  // namespace mox::data
