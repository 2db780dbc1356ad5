// Tables that are parsed in slices on several threads: what one slice gives, and the same errors.
#include "moxing/formats/internal/csv/csv_slices.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "moxing/formats/internal/csv/csv_rows.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/text/utf8.h"
#include "tests/support/sanitizers.h"

namespace mox::data::internal {
namespace {

constexpr CsvSlices kOneSlice{.bytes = SIZE_MAX, .cores = 1};

// All that is learnt of a text, or the error.
std::string rows_or_error(const std::string& text, const CsvSlices& slices) {
  try {
    const CsvRows rows = csv_rows(text, ',', "t.csv", slices);
    std::string all = fmt::format("{} columns", rows.columns);
    for (size_t i = 0; i < rows.texts.size(); ++i) all += fmt::format(" [{}]", rows.texts[i]);
    for (const uint32_t line : rows.lines) all += fmt::format(" {}", line);
    return all;
  } catch (const DataError& error) {
    return error.what();
  }
}

// To wake threads takes longer than all else here.
int several_now_and_then(int i) { return i % 50 == 0 ? 2 : 1; }

// Pieces that mean something to a reader of CSV, in any order.
std::string random_text(std::mt19937& random, size_t pieces) {
  static constexpr std::string_view kPieces[] = {"a",
                                                 "b,c",
                                                 ",",
                                                 ",",
                                                 "\n",
                                                 "\n",
                                                 "\r\n",
                                                 "\r",
                                                 "\"",
                                                 "\"\"",
                                                 " ",
                                                 "\t",
                                                 "\"q\"",
                                                 "\"x\ny\"",
                                                 ",\"",
                                                 "\",",
                                                 "\"a, \"\"b\"\"\r\n\"",
                                                 " \"s\" ",
                                                 "5\" pipe",
                                                 "1,2\n",
                                                 "\"\n",
                                                 "\n\""};
  std::string text = random() % 4 == 0 ? "a\n" : "a,b\n";
  for (size_t i = 0; i < pieces; ++i) text += kPieces[random() % std::size(kPieces)];
  return text;
}

TEST(CsvSlicesTest, OfAnyTextAreTheSameForAnySizeAndNumberOfCores) {
  std::mt19937 random(7);
  size_t tables = 0;
  for (int i = 0; i < 5000; ++i) {
    const std::string text = random_text(random, random() % 24);
    const std::string whole = rows_or_error(text, kOneSlice);
    tables += whole.find("columns [") != whole.npos ? 1 : 0;
    const CsvSlices slices{.bytes = 1 + random() % 20, .cores = several_now_and_then(i)};
    ASSERT_EQ(rows_or_error(text, slices), whole)
        << testing::PrintToString(text) << " in slices of " << slices.bytes << ", cores " << slices.cores;
  }
  EXPECT_GT(tables, 300u);
  EXPECT_LT(tables, 4500u);
}

// Line ends in quotes, such that most slices would end within a cell; and quotes that are none.
TEST(CsvSlicesTest, RowsLongerThanASliceAreWhole) {
  std::string text = "id,note,last\n";
  for (size_t i = 0; i < 3000; ++i) {
    text += std::to_string(i);
    if (i % 7 == 0) {
      text += ",5\" pipe,\"x\"\r\n";
      continue;
    }
    text += ", \"first, \"\"second\"\"\n";
    for (size_t line = 0; line < i % 90; ++line) text += line % 3 == 0 ? "1,2,3\r\n" : "\"\",\"\"\n\n";
    text += "\"\t,end\n";
  }
  const std::string whole = rows_or_error(text, kOneSlice);
  ASSERT_NE(whole.find("[5\" pipe] [x]"), whole.npos) << whole.substr(0, 300);
  for (const int cores : {1, 2})
    for (const size_t bytes : {size_t{50}, size_t{999}, size_t{65'536}, CsvSlices{}.bytes})
      EXPECT_TRUE(rows_or_error(text, {.bytes = bytes, .cores = cores}) == whole) << bytes << ", " << cores;
}

TEST(CsvSlicesTest, TheFirstErrorIsTheOneOfOneSlice) {
  std::string good;
  for (int i = 0; i < 2000; ++i) good += fmt::format("{},\"a\nb\",{}\r\n", i, i % 3);
  const std::string names = "a,b,c\n";
  for (const std::string bad : {"1,2\n", "1,2,3,4\n", "\"x\"y,2,3\n", "1,\"2,3\n"})
    for (const std::string& text :
         {names + bad + good, names + good + bad + good + "1\n", names + good + bad}) {
      const std::string whole = rows_or_error(text, kOneSlice);
      ASSERT_NE(whole.find("'t.csv', line "), whole.npos);
      for (const int cores : {1, 2}) EXPECT_EQ(rows_or_error(text, {.bytes = 1000, .cores = cores}), whole);
    }
}

TEST(CsvSlicesTest, Utf8AndChecksumsAreThoseOfTheWhole) {
  std::mt19937 random(3);
  const std::vector<std::string> pieces = {"a",    "\n",   "ü",        "€", "\xf0\x9f\x98\x80",
                                           "\x80", "\xc3", "\xe2\x82", "z"};
  for (int i = 0; i < 5000; ++i) {
    std::string text;
    // Whole characters for the most part.
    for (size_t k = random() % 40; k > 0; --k)
      text += pieces[random() % (random() % 8 == 0 ? pieces.size() : 5)];
    const CsvSlices slices{.bytes = 1 + random() % 9, .cores = several_now_and_then(i)};
    ASSERT_EQ(utf8_prefix_of_slices(text, slices), utf8_prefix(text)) << testing::PrintToString(text);
    ASSERT_EQ(crc32_of_slices(text, 5, slices), crc32(std::as_bytes(std::span(text)), 5));
  }
}

// Of a user whose only processes are the test's.
void take_with_one_thread() {
  const uid_t user = 1'000'000 + ::getpid();
  const rlimit one = {1, 1};
  if (setrlimit(RLIMIT_NPROC, &one) != 0 || ::setresuid(user, user, user) != 0) std::exit(2);
  std::atomic<size_t> taken = 0;
  take_on_all_cores(100, {.cores = 4}, [&](size_t) { ++taken; });
  std::exit(taken == 100 ? 0 : 3);
}

// oneTBB makes its threads unasked, and ends the process where one is refused.
TEST(TakeOnAllCoresDeathTest, NeedsNoMoreThreadsThanTheSystemGives) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root, to be another user";
  if (kReservesAddressSpace)
    GTEST_SKIP() << "needs a build without sanitizers, which have threads of their own";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(take_with_one_thread(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace mox::data::internal
