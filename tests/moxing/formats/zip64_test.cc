// Archives whose numbers are too wide for the fields of the first zip format.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "moxing/formats/npy.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "tests/moxing/formats/zip_sample.h"
#include "tests/support/message_of.h"

namespace mox::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::map<std::string, Array> arrays_of(const std::string& archive) {
  return parse_npz(std::as_bytes(std::span(archive)), "x.npz");
}

// tests/fixtures/zip64_*.npz are numpy.savez and savez_compressed (NumPy 1.24) of a = arange(6,
// dtype=float32).reshape(2, 3) and b = array([3, -1]), with zipfile.ZIP64_LIMIT = ZIP_FILECOUNT_LIMIT = 1:
// what is written of 4 GiB.
std::string fixture(const std::string& kind) {
  return read_file(MOX_SOURCE_DIR "/tests/fixtures/zip64_" + kind + ".npz");
}

void expect_both_arrays(const std::string& archive) {
  const auto arrays = arrays_of(archive);
  ASSERT_EQ(arrays.size(), 2u);
  EXPECT_THAT(arrays.at("a").values<float>(), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(arrays.at("a").shape(), (Shape{2, 3}));
  EXPECT_THAT(arrays.at("b").values<int64_t>(), ElementsAre(3, -1));
}

// The archive as it is where the directory lies behind the first 4 GiB: the record at its end says only that
// the numbers are elsewhere.
std::string with_wide_end(std::string archive) {
  const size_t end = archive.rfind("PK\5\6");
  std::fill_n(archive.begin() + static_cast<ptrdiff_t>(end) + 8, 12, '\xff');
  return archive;
}

TEST(Zip64, MembersAreRead) {
  for (const char* kind : {"stored", "deflated"}) {
    SCOPED_TRACE(kind);
    expect_both_arrays(fixture(kind));
    expect_both_arrays(with_wide_end(fixture(kind)));
  }
}

TEST(Zip64, MoreMembersThanSixteenBitsCount) {
  std::vector<ZipSample> members(65'534, {.name = "note.txt", .content = ""});
  members.push_back({.name = "last.npy", .content = make_npy_header({DType::kUInt8, {2}}) + "ab"});
  // 65,535 is what stands for "elsewhere": here there is nothing elsewhere.
  EXPECT_THAT(arrays_of(zip_of(members)).at("last").values<uint8_t>(), ElementsAre('a', 'b'));
}

TEST(Zip64, DamageIsRefused) {
  for (const char* kind : {"stored", "deflated"}) {
    const std::string good = with_wide_end(fixture(kind));
    for (size_t length = 0; length < good.size(); ++length)
      EXPECT_THROW(arrays_of(good.substr(0, length)), DataError) << length;
    for (size_t i = 0; i < good.size(); ++i)
      for (const int bit : {0, 3, 7}) {
        std::string damaged = good;
        damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
        try {
          arrays_of(damaged);
        } catch (const DataError&) {
        }
      }
  }
  std::string damaged = with_wide_end(fixture("stored"));
  damaged[damaged.rfind("PK\6\6") + 2] = 'x';
  EXPECT_THAT(message_of<DataError>([&] { arrays_of(damaged); }),
              HasSubstr("the end of a zip64 directory is expected here"));
  // The extra field has two of the three numbers that the second member needs.
  damaged = fixture("stored");
  damaged[damaged.rfind("b.npy") + 5 + 2] = 16;
  EXPECT_THAT(message_of<DataError>([&] { arrays_of(damaged); }),
              HasSubstr("a field of a zip64 member is missing"));
}

// Sizes near 2^64, whose sums with others would wrap around.
TEST(Zip64, HugeNumbersAreRefused) {
  const std::string good = fixture("stored");
  const size_t first = good.find("a.npy", good.find("PK\1\2")) + 5 + 4;  // size and packed size
  for (const size_t field : {first, first + 8}) {
    std::string damaged = good;
    std::fill_n(damaged.begin() + static_cast<ptrdiff_t>(field), 8, '\xff');
    EXPECT_THROW(arrays_of(damaged), DataError);
  }
  const size_t place = good.rfind("b.npy") + 5 + 4 + 16;
  const size_t directory = good.rfind("PK\6\6") + 48, entries = good.rfind("PK\6\6") + 32;
  for (const size_t field : {place, directory, entries}) {
    std::string damaged = with_wide_end(good);
    std::fill_n(damaged.begin() + static_cast<ptrdiff_t>(field), 8, '\xff');
    EXPECT_THROW(arrays_of(damaged), DataError);
  }
}

}  // namespace
}  // namespace mox::data
