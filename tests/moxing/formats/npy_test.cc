#include "moxing/formats/npy.h"

#include <fmt/format.h>
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/resource_limits.h"
#include "runtime/data/pipeline.h"
#include "tests/moxing/formats/zip_sample.h"
#include "tests/support/sanitizers.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/without_privileges.h"

namespace mox::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

std::string npy(const std::string& header, const std::string& data) {
  return std::string("\x93NUMPY\x01\0", 8) + static_cast<char>(header.size()) + '\0' + header + data;
}

std::string header(const std::string& type, const std::string& shape, const std::string& order = "False") {
  return "{'descr': '" + type + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }   \n";
}

std::string message(const std::string& bytes) {
  return message_of<DataError>([&] { parse_npy(as_bytes(bytes), "dir/x.npy"); });
}

TEST(Npy, ReadsArrays) {
  const Array array =
      parse_npy(as_bytes(npy(header("<i4", "(2, 1)"), std::string("\1\0\0\0\2\0\0\0", 8))), "x");
  EXPECT_EQ(array.type(), (TensorType{DType::kInt32, Shape{2, 1}}));
  EXPECT_THAT(array.values<int32_t>(), ElementsAre(1, 2));
  EXPECT_EQ(parse_npy(as_bytes(npy(header("|u1", "()"), "\7")), "x").item(), 7);
  EXPECT_EQ(parse_npy(as_bytes(npy(header("<f4", "(3,)"), std::string(12, '\0'))), "x").shape(), Shape{3});
  EXPECT_EQ(parse_npy(as_bytes(npy(header("<f4", "(0, 5)"), "")), "x").elements(), 0);
}

TEST(Npy, MakesTheHeadersThatItReads) {
  for (const TensorType& type :
       {TensorType{DType::kFloat32, Shape{}}, TensorType{DType::kInt64, Shape{3}},
        TensorType{DType::kUInt8, Shape{0, 4}}, TensorType{DType::kBool, Shape{32, 25000000}}}) {
    const std::string header = make_npy_header(type);
    EXPECT_EQ(header.size() % 64, 0U);
    const NpyHeader read = parse_npy_header(as_bytes(header), "x");
    EXPECT_EQ(read.type, type);
    EXPECT_EQ(read.data_begin, header.size());
  }
  EXPECT_THAT(make_npy_header("<U7", Shape{3, 2}),
              AllOf(HasSubstr("'descr': '<U7'"), HasSubstr("'shape': (3, 2,),"), SizeIs(128)));
  EXPECT_THAT(message_of<InvalidArgument>([] {
                make_npy_header({DType::kBFloat16, Shape{2}});
              }),
              HasSubstr("bfloat16"));
}

TEST(Npy, GivesSamples) {
  TemporaryDirectory directory;
  const std::string images =
      directory.write("x.npy", npy(header("|u1", "(3, 2)"), std::string("\1\2\3\4\5\6", 6)));
  const std::string labels = directory.write("y.npy", npy(header("|u1", "(3,)"), std::string("\7\10\11", 3)));
  Pipeline pipeline(data::npy({images, labels}).batch(3), {});
  Batch batch;
  ASSERT_TRUE(pipeline.next(&batch));
  EXPECT_THAT(batch.components[0].values<uint8_t>(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(batch.components[1].values<uint8_t>(), ElementsAre(7, 8, 9));
  const std::string fewer = directory.write("z.npy", npy(header("|u1", "(2,)"), "ab"));
  const std::string number = directory.write("n.npy", npy(header("|u1", "()"), "a"));
  EXPECT_THAT(message_of<DataError>([&] {
                data::npy({images, fewer});
              }),
              AllOf(HasSubstr("x.npy' has 3 rows"), HasSubstr("z.npy' has 2")));
  EXPECT_THAT(message_of<DataError>([&] { data::npy(std::vector<std::string>{number}); }),
              HasSubstr("n.npy"));
  EXPECT_THROW(data::npy(std::vector<std::string>{}), InvalidArgument);
}

TEST(Npy, RefusesWhatItCannotHold) {
  EXPECT_THAT(message(npy(header("<f8", "(1,)"), std::string(8, '\0'))),
              AllOf(HasSubstr("dir/x.npy"), HasSubstr("'<f8'"), HasSubstr("astype")));
  EXPECT_THAT(message(npy(header("|O", "(1,)"), "x")), HasSubstr("pickle"));
  EXPECT_THAT(message(npy(header("|u1", "(2,)"), "x")), HasSubstr("needs 2 bytes"));
  EXPECT_THAT(message(npy(header("|u1", "(1,)"), "xy")), HasSubstr("2 are given"));
  EXPECT_THAT(message(npy(header("<f4", "(4611686018427387904, 4)"), "")), HasSubstr("impossible"));
  EXPECT_THAT(message(npy(header("|b1", "(1,)"), "\2")), HasSubstr("bool"));
  EXPECT_THAT(message("text"), HasSubstr("no .npy file, which would start with"));
  EXPECT_THAT(message("PK\x03\x04 and so on"), HasSubstr("a zip archive: data::npz and read_npz"));
  const std::string long_header = std::string(70'000, ' ') + header("|u1", "(1,)");
  EXPECT_THAT(
      message(std::string("\x93NUMPY\x02\0", 8) + std::string("\xa5\x11\1\0", 4) + long_header + "\7"),
      HasSubstr("an array of numbers has a shorter one"));
  const std::string good = npy(header("|u1", "(4,)"), "abcd");
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_FALSE(message(good.substr(0, length)).empty());
}

// tests/fixtures/arrays.npz is numpy.savez_compressed(..., a=arange(6, dtype=float32).reshape(2, 3),
// b=array([1, 2], int64)).
TEST(Npz, ReadsWhatNumpyWrote) {
  const auto arrays = read_npz(MOX_SOURCE_DIR "/tests/fixtures/arrays.npz");
  ASSERT_EQ(arrays.size(), 2u);
  EXPECT_THAT(arrays.at("a").values<float>(), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(arrays.at("a").shape(), (Shape{2, 3}));
  EXPECT_THAT(arrays.at("b").values<int64_t>(), ElementsAre(1, 2));
}

TEST(Npz, GivesSamples) {
  const std::string path = MOX_SOURCE_DIR "/tests/fixtures/arrays.npz";
  Pipeline pipeline(npz(path, {"b", "a"}).batch(2), {});
  Batch batch;
  ASSERT_TRUE(pipeline.next(&batch));
  EXPECT_THAT(batch.components[0].values<int64_t>(), ElementsAre(1, 2));
  EXPECT_THAT(batch.components[1].values<float>(), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(message_of<NotFound>([&] {
                npz(path, {"a", "images"});
              }),
              HasSubstr("no array 'images'; it has a, b"));
}

// "b" is damaged: it would not unpack.
TEST(NpzTest, AnArrayNobodyAskedForIsNotUnpacked) {
  std::string archive = read_file(MOX_SOURCE_DIR "/tests/fixtures/arrays.npz");
  const size_t member = archive.find("b.npy");
  ASSERT_NE(member, archive.npos);
  std::fill_n(archive.begin() + static_cast<ptrdiff_t>(member) + 30, 20, '\x55');
  const TemporaryDirectory directory;
  const std::string path = directory.write("damaged_member.npz", archive);
  EXPECT_THROW(read_npz(path), DataError);
  EXPECT_THROW(read_npz(path, {"b"}), DataError);
  EXPECT_EQ(read_npz(path, {"a"}).at("a").shape(), Shape({2, 3}));
}

TEST(Npz, RefusesDamage) {
  const std::string good = read_file(MOX_SOURCE_DIR "/tests/fixtures/arrays.npz");
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_THROW(parse_npz(as_bytes(good.substr(0, length)), "x"), DataError) << length;
  for (size_t i = 0; i < good.size(); ++i)
    for (int bit : {0, 3, 7}) {
      std::string damaged = good;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      try {
        parse_npz(as_bytes(damaged), "x");
      } catch (const DataError&) {
      }
    }
}

// Values that need many bytes of a file, and repeat themselves late.
std::string many_bytes(size_t count) {
  std::string bytes(count, '\0');
  uint64_t state = 1;
  for (size_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    bytes[i] = static_cast<char>(i % 3 == 0 ? state >> 60 : state >> 34);
  }
  return bytes;
}

TEST(Npz, LargeMembersAreReadInPieces) {
  const std::string values = many_bytes((5 << 20) + 3);
  const std::string shape = "(" + std::to_string(values.size()) + ",)";
  for (const bool is_deflated : {false, true}) {
    const std::string archive = zip_of({{"first.npy", npy(header("|u1", "(3,)"), "abc"), is_deflated},
                                        {"empty.npy", npy(header("|u1", "(0,)"), ""), is_deflated},
                                        {"notes.txt", "", is_deflated},
                                        {"large.npy", npy(header("|u1", shape), values), is_deflated}});
    const TemporaryDirectory directory;
    const std::string path = directory.write("x.npz", archive);
    for (const auto& arrays :
         {read_npz(path), parse_npz(as_bytes(archive), "x"), read_npz(path, {"large", "empty", "first"})}) {
      ASSERT_EQ(arrays.size(), 3u);
      EXPECT_TRUE(std::ranges::equal(arrays.at("large").as_bytes(), as_bytes(values)));
      EXPECT_THAT(arrays.at("first").values<uint8_t>(), ElementsAre('a', 'b', 'c'));
    }
  }
}

TEST(Npz, SizesAndChecksumsAreThoseOfTheContent) {
  const std::string good = npy(header("|u1", "(300000,)"), many_bytes(300000));
  const auto refusal = [](const ZipSample& member) {
    return message_of<DataError>([&] { parse_npz(as_bytes(zip_of({member})), "dir/x.npz"); });
  };
  // An array of the claimed size; the content has fewer bytes, or more.
  for (const int64_t more : {-1, 1, 1000}) {
    const std::string claimed = npy(header("|u1", fmt::format("({},)", 300000 + more)), many_bytes(300000));
    EXPECT_THAT(refusal({"a.npy", claimed, true, more}), HasSubstr("cannot be unpacked")) << more;
    EXPECT_THAT(refusal({"a.npy", claimed, false, more}), HasSubstr("two sizes")) << more;
  }
  std::string other = good;
  other.back() = static_cast<char>(other.back() ^ 1);
  EXPECT_THAT(refusal({"a.npy", good, false, 0, other}), HasSubstr("its checksum should be"));
  EXPECT_THAT(refusal({"a.npy", good, true, 0, deflated(other)}), HasSubstr("its checksum should be"));
  for (const size_t cut : {size_t{1}, size_t{70000}}) {
    const std::string packed = deflated(good);
    EXPECT_THAT(refusal({"a.npy", good, true, 0, packed.substr(0, packed.size() - cut)}),
                HasSubstr("cannot be unpacked"));
  }
}

// For a message nobody reads an archive once more.
TEST(Npz, HeadersAreReadWithoutTheValues) {
  std::string content = npy(header("<u2", "(200000,)"), many_bytes(400000));
  std::string packed = deflated(content);
  packed.resize(packed.size() - 1000);
  const TemporaryDirectory directory;
  const std::string path = directory.write("x.npz", zip_of({{"a.npy", content, true, 0, packed}}));
  EXPECT_EQ(read_npz_headers(path, {"a"}).at("a").stored, "u2");
  EXPECT_THROW(read_npz(path), DataError);
}

// An archive (zip64) at `path` with the stored arrays "a" and "b" of so many bytes each, which are holes.
void write_holes(const std::string& path, uint64_t bytes) {
  const auto number = [](uint64_t value, int count) {
    std::string text;
    for (; count > 0; --count, value >>= 8) text += static_cast<char>(value & 0xff);
    return text;
  };
  constexpr uint64_t kWide = 0xffffffff;
  const std::string array = npy(header("|u1", fmt::format("({},)", bytes)), "");
  const uint64_t size = array.size() + bytes;
  std::ofstream file(path);
  std::string directory;
  uint64_t at = 0;
  for (const std::string name : {"a.npy", "b.npy"}) {
    const std::string head = "PK\3\4" + number(0, 22) + number(name.size(), 2) + number(0, 2) + name;
    file.seekp(static_cast<std::streamoff>(at));
    file << head << array;
    directory += "PK\1\2" + number(0, 16) + number(kWide, 4) + number(kWide, 4) + number(name.size(), 2) +
                 number(28, 2) + number(0, 10) + number(kWide, 4) + name;
    directory += number(1, 2) + number(24, 2) + number(size, 8) + number(size, 8) + number(at, 8);
    at += head.size() + size;
  }
  file.seekp(static_cast<std::streamoff>(at));
  file << directory << "PK\6\6" << number(0, 28) << number(2, 8) << number(0, 8) << number(at, 8);
  file << "PK\6\7" << number(0, 4) << number(at + directory.size(), 8) << number(1, 4);
  file << "PK\5\6" << number(0, 6) << number(2, 2) << number(0, 4) << number(kWide, 4) << number(0, 2);
}

// Each of the arrays fits into the memory, and both do not.
TEST(Npz, OfHolesIsNotRead) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("holes.npz");
  const uint64_t half = available_memory() / 2 + 1;
  write_holes(path, half);
  EXPECT_THAT(message_of<IoError>([&] { read_npz(path); }),
              HasSubstr(fmt::format("'{}' has {} bytes", path, 2 * half)));
  EXPECT_THROW(read_npz(path, {"b", "a"}), IoError);
  constexpr int64_t kFits = 1 << 20;
  write_holes(path, kFits);
  EXPECT_EQ(read_npz_headers(path, {"b"}).at("b").type.shape, Shape({kFits}));
}

TEST(Npy, LargeFilesOfAnotherOrderAreReadInPieces) {
  constexpr int64_t kRows = 700, kPlanes = 5, kColumns = 301;  // 2 MB
  const std::string values = many_bytes(kRows * kPlanes * kColumns * 2);
  const auto at = [&](int64_t place) {
    return 256 * static_cast<uint8_t>(values[2 * place]) + static_cast<uint8_t>(values[2 * place + 1]);
  };
  const TemporaryDirectory directory;
  const std::string shape = fmt::format("({}, {}, {})", kRows, kPlanes, kColumns);
  const Array in_order = read_npy(directory.write("x.npy", npy(header(">u2", shape), values)));
  const Array by_columns = read_npy(directory.write("x.npy", npy(header(">u2", shape, "True"), values)));
  ASSERT_EQ(in_order.shape(), (Shape{kRows, kPlanes, kColumns}));
  ASSERT_EQ(by_columns.shape(), in_order.shape());
  for (int64_t row = 0, place = 0; row < kRows; ++row)
    for (int64_t plane = 0; plane < kPlanes; ++plane)
      for (int64_t column = 0; column < kColumns; ++column, ++place) {
        ASSERT_EQ(in_order.values<int32_t>()[place], at(place));
        ASSERT_EQ(by_columns.values<int32_t>()[place], at(row + kRows * (plane + kPlanes * column)));
      }
}

TEST(Npy, ReadsWhatOtherWritersAndOlderNumPysWrite) {
  const auto read = [](const std::string& content) {
    return parse_npy(std::as_bytes(std::span(content.data(), content.size())), "x.npy");
  };
  // Fortran's order: [[1, 2, 3], [4, 5, 6]] by columns.
  EXPECT_THAT(read(npy(header("|u1", "(2, 3)", "True"), "\1\4\2\5\3\6")).values<uint8_t>(),
              ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(read(npy(header(">i4", "(2,)"), std::string("\0\0\1\2\xff\xff\xff\xff", 8))).values<int32_t>(),
              ElementsAre(258, -1));
  EXPECT_THAT(read(npy(header("<i2", "(2L,)"), std::string("\xff\xff\2\1", 4))).values<int32_t>(),
              ElementsAre(-1, 258));
  EXPECT_THAT(read(npy(header("<u2", "(1,)"), "\xff\xff")).values<int32_t>(), ElementsAre(65535));
  EXPECT_THAT(read(npy(header("<u4", "(1,)"), "\xff\xff\xff\xff")).values<int64_t>(),
              ElementsAre(4294967295));
  EXPECT_THAT(read(npy(header("|i1", "(1,)"), "\x80")).values<int32_t>(), ElementsAre(-128));
  EXPECT_THAT(read(npy(header("<f2", "(4,)"), std::string("\0\x3c\0\xc0\1\0\xff\x7b", 8))).values<float>(),
              ElementsAre(1, -2, 0x1p-24f, 65504));
  EXPECT_THAT(read(npy(header("u1", "(1,)"), "\7")).values<uint8_t>(), ElementsAre(7));
  EXPECT_THAT(
      read(npy("{\"descr\": \"<u1\",\t\"fortran_order\": False, \"shape\": (1,)}", "\7")).values<uint8_t>(),
      ElementsAre(7));
  EXPECT_THAT(
      read(npy("{u'descr': u'|u1', 'fortran_order': False, 'shape': (1L,), }", "\7")).values<uint8_t>(),
      ElementsAre(7));
}

// No option bounds it: the error says so, and what is read within one.
TEST(Npy, MemoryThatIsRefusedIsNamedWithAWayOn) {
  if (kReservesAddressSpace)
    GTEST_SKIP() << "needs a build without sanitizers, which want more address space than a limit leaves";
  const TemporaryDirectory directory;
  const std::string path = directory.write("x.npy", make_npy_header({DType::kFloat32, Shape{1 << 24}}));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) + (size_t{64} << 20));
  std::filesystem::permissions(directory.path(), std::filesystem::perms::others_exec,
                               std::filesystem::perm_options::add);
  EXPECT_THAT(message_without_privileges<OutOfMemory>([&] {
                size_t pages = 0;
                std::ifstream("/proc/self/statm") >> pages;
                const rlim_t limit = pages * static_cast<size_t>(::sysconf(_SC_PAGESIZE)) + (32 << 20);
                const rlimit room = {limit, limit};
                ::setrlimit(RLIMIT_AS, &room);
                read_npy(path);
              }),
              AllOf(HasSubstr("'" + path + "'"), HasSubstr("67108864 bytes of memory"),
                    HasSubstr("held in memory whole, whatever data_memory_mb says"),
                    HasSubstr("TFRecord files, which are read a record at a time")));
}

}  // namespace
}  // namespace mox::data
