// Arrays that are read are in memory once, and what nobody asks for is not.
#include <gtest/gtest.h>

#include <functional>

#include "moxing/formats/npy.h"
#include "tests/fuzz/harness/heap_peak.h"
#include "tests/moxing/formats/zip_sample.h"
#include "tests/support/temporary_directory.h"

namespace mox::data {
namespace {

constexpr int64_t kMebibyte = 1 << 20;

// Values that deflate makes half as long, or less.
std::string array_file(DType dtype, int64_t mebibytes) {
  const auto count = mebibytes * kMebibyte / static_cast<int64_t>(size_of(dtype));
  std::string content = make_npy_header({dtype, Shape{count}});
  for (int64_t i = 0; i < mebibytes * kMebibyte; ++i) content += static_cast<char>((i * i) >> 7 & 0x1f);
  return content;
}

// Of the heap, at its height. An array lies on huge pages, which may cost it 2 MiB more than it has.
double mebibytes_of(const std::function<void()>& read) {
  fuzz::restart_heap_peak();
  read();
  return static_cast<double>(fuzz::heap_peak()) / kMebibyte;
}

class ArrayMemory : public testing::Test {
 protected:
  TemporaryDirectory directory_;
};

TEST_F(ArrayMemory, OfAFileIsThatOfItsArray) {
  const std::string path = directory_.write("x.npy", array_file(DType::kFloat32, 16));
  EXPECT_LT(mebibytes_of([&] { EXPECT_EQ(read_npy(path).bytes(), size_t{16} << 20); }), 20);
}

TEST_F(ArrayMemory, OfAFileOfAnotherTypeIsThatOfItsArray) {
  std::string content = array_file(DType::kUInt8, 8);
  content.replace(content.find("|u1"), 3, "|i1");
  const std::string path = directory_.write("x.npy", content);
  EXPECT_LT(mebibytes_of([&] { EXPECT_EQ(read_npy(path).bytes(), size_t{32} << 20); }), 38);
}

TEST_F(ArrayMemory, OfAnArchiveIsThatOfTheArraysThatAreAskedFor) {
  for (const bool deflated : {false, true}) {
    const std::string path =
        directory_.write("x.npz", zip_of({{"a.npy", array_file(DType::kFloat32, 16), deflated},
                                          {"b.npy", array_file(DType::kFloat32, 8), deflated},
                                          {"c.npy", array_file(DType::kFloat32, 16), deflated}}));
    EXPECT_LT(mebibytes_of([&] { EXPECT_EQ(read_npz(path, {"b"}).at("b").bytes(), size_t{8} << 20); }), 12);
    EXPECT_LT(mebibytes_of([&] { EXPECT_EQ(read_npz(path).size(), 3u); }), 50);
    EXPECT_LT(mebibytes_of([&] { EXPECT_EQ(read_npz_headers(path, {"a", "c"}).size(), 2u); }), 1);
  }
}

}  // namespace
}  // namespace mox::data
