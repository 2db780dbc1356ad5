#include "moxing/checkpoint/safetensors.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/resource_limits.h"
#include "tests/moxing/checkpoint/checkpoint_samples.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_directory.h"

namespace mox {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

// A file made by hand: the length of the header, the header, the data.
std::string file_of(const std::string& header, const std::string& data) {
  std::string file(8, '\0');
  for (int i = 0; i < 8; ++i) file[i] = static_cast<char>(uint64_t{header.size()} >> (8 * i));
  return file + header + data;
}

std::string error_when_parsing(const std::string& content) {
  try {
    parse_safetensors(bytes_of(content), "weights.safetensors");
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'weights.safetensors'"));
    return error.what();
  }
  ADD_FAILURE() << "was read without an error";
  return "";
}

// Every dtype; scalar, empty and odd-sized shapes.
std::vector<NamedArray> all_kinds() {
  return {
      {"scalar", Array::scalar(3.5f)},
      {"empty", Array(DType::kFloat32, {4, 0, 2})},
      {"layer/weights \"quoted\" ü", Array::from<float>({2, 3}, {1, -2, 3, 4.5f, 1e-40f, 6})},
      {"half", Array::from<BFloat16>({3}, {BFloat16(1.f), BFloat16(-2.f), BFloat16(0.5f)})},
      {"i32", Array::from<int32_t>({1, 2}, {-7, 2147483647})},
      {"i64", Array::from<int64_t>({2}, {INT64_MIN, INT64_MAX})},
      {"u8", Array::from<uint8_t>({3}, {0, 128, 255})},
      {"bool", Array::from<bool>({5}, {true, false, true, true, false})},
  };
}

const Array* find(const std::vector<NamedArray>& tensors, const std::string& name) {
  for (const NamedArray& tensor : tensors)
    if (tensor.name == name) return &tensor.value;
  return nullptr;
}

TEST(Safetensors, EveryDTypeAndShapeComesBack) {
  const std::string path = fresh_directory("kinds.safetensors");
  const SafetensorsStamp stamp = write_safetensors(path, all_kinds(), {{"note", "line\nbreak"}});
  const SafetensorsFile file = read_safetensors(path);
  EXPECT_TRUE(file.checksummed);
  EXPECT_EQ(file.stamp, stamp);
  EXPECT_EQ(file.stamp.bytes, std::filesystem::file_size(path));
  EXPECT_EQ(file.metadata, (std::map<std::string, std::string>{{"note", "line\nbreak"}}));
  ASSERT_EQ(file.tensors.size(), all_kinds().size());
  for (size_t i = 1; i < file.tensors.size(); ++i) EXPECT_LT(file.tensors[i - 1].name, file.tensors[i].name);
  for (const NamedArray& written : all_kinds()) {
    const Array* read = find(file.tensors, written.name);
    ASSERT_TRUE(read) << written.name;
    EXPECT_EQ(read->type(), written.value.type()) << written.name;
    EXPECT_EQ(std::memcmp(read->data(), written.value.data(), read->bytes()), 0) << written.name;
  }
}

TEST(Safetensors, AFileWithoutTensorsComesBack) {
  const std::string path = fresh_directory("none.safetensors");
  write_safetensors(path, {});
  EXPECT_TRUE(read_safetensors(path).tensors.empty());
  EXPECT_TRUE(read_safetensors(path).checksummed);
}

TEST(Safetensors, TheOrderOfTheArgumentsDoesNotMatter) {
  auto tensors = all_kinds();
  const std::string a = fresh_directory("a.safetensors"), b = fresh_directory("b.safetensors");
  write_safetensors(a, tensors);
  std::reverse(tensors.begin(), tensors.end());
  write_safetensors(b, tensors);
  EXPECT_EQ(read_file(a), read_file(b));
}

TEST(Safetensors, EveryTensorIsAlignedInTheFile) {
  const std::string path = fresh_directory("aligned.safetensors");
  write_safetensors(path, std::vector<NamedArray>{{"a", Array(DType::kUInt8, {3})},
                                                  {"b", Array::from<int64_t>({1}, {0x1122334455667788})},
                                                  {"c", Array::from<float>({1}, {1})}});
  const std::string content = read_file(path);
  uint64_t header = 0;
  std::memcpy(&header, content.data(), 8);
  EXPECT_EQ((8 + header) % 64, 0u);
  EXPECT_EQ(content.find("\x88\x77\x66\x55\x44\x33\x22\x11"), 8 + header);
}

// Bytes laid out by hand from the format's description: what another program would write.
TEST(Safetensors, AForeignFileIsReadAndSaysThatItHasNoChecksums) {
  const std::string content = file_of(
      R"({"b":{"dtype":"I32","shape":[2],"data_offsets":[4,12]},"a":{"shape":[2,1],"data_offsets":[0,4],"dtype":"BF16"},)"
      R"("s":{"dtype":"U8","shape":[],"data_offsets":[12,13]},"__metadata__":{"format":"pt"}}   )",
      std::string("\x80\x3f\x00\xc0"
                  "\x01\x00\x00\x00\xff\xff\xff\xff"
                  "\x2a",
                  13));
  const SafetensorsFile file = parse_safetensors(bytes_of(content), "foreign");
  EXPECT_FALSE(file.checksummed);
  EXPECT_EQ(file.stamp.header_crc32, 0u);
  EXPECT_EQ(file.metadata.at("format"), "pt");
  ASSERT_EQ(file.tensors.size(), 3u);
  EXPECT_EQ(to_string(find(file.tensors, "a")->type()), "bfloat16[2, 1]");
  EXPECT_EQ(static_cast<float>(find(file.tensors, "a")->values<BFloat16>()[0]), 1.f);
  EXPECT_EQ(static_cast<float>(find(file.tensors, "a")->values<BFloat16>()[1]), -2.f);
  EXPECT_EQ(find(file.tensors, "b")->values<int32_t>()[1], -1);
  EXPECT_EQ(find(file.tensors, "s")->item(), 42);
}

// The other direction: the bytes that we write are the format's, and nothing that another
// reader would refuse.
TEST(Safetensors, TheBytesWrittenAreTheFormats) {
  const std::string path = fresh_directory("golden.safetensors");
  write_safetensors(path, std::vector<NamedArray>{{"w", Array::from<float>({1, 2}, {1, 2})}});
  std::string header =
      R"({"__metadata__":{"moxing.header_crc32":"????????","moxing.version":"1","moxing.crc32.w":"2e3fa576"},)"
      R"("w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}})";
  header.resize((8 + header.size() + 63) / 64 * 64 - 8, ' ');
  std::string expected = file_of(header, std::string("\0\0\x80\x3f\0\0\0\x40", 8));
  const std::string written = read_file(path);
  ASSERT_EQ(written.size(), expected.size());
  expected.replace(expected.find("????????"), 8, written.substr(expected.find("????????"), 8));
  EXPECT_EQ(written, expected);
}

TEST(Safetensors, EveryFlippedByteIsFound) {
  const std::string path = fresh_directory("flip.safetensors");
  for (const auto& tensors : {all_kinds(), std::vector<NamedArray>{}}) {
    write_safetensors(path, tensors, {{"note", "x"}});
    const std::string good = read_file(path);
    for (size_t i = 0; i < good.size(); ++i) {
      for (unsigned char mask : {0x01, 0x20, 0x80, 0xff}) {
        std::string bad = good;
        bad[i] = static_cast<char>(bad[i] ^ mask);
        EXPECT_THROW(parse_safetensors(bytes_of(bad), "x"), DataError)
            << "byte " << i << " mask " << int{mask};
      }
    }
  }
}

TEST(Safetensors, EveryTruncationAndAnyExtensionIsFound) {
  const std::string path = fresh_directory("truncate.safetensors");
  write_safetensors(path, all_kinds());
  const std::string good = read_file(path);
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_THROW(parse_safetensors(bytes_of(good.substr(0, length)), "x"), DataError) << length;
  EXPECT_THAT(error_when_parsing(good + "x"), HasSubstr("1 bytes behind its last tensor"));
  EXPECT_THAT(error_when_parsing(good.substr(0, good.size() - 1)), HasSubstr("is truncated: tensor 'u8'"));
}

TEST(Safetensors, AFlippedByteOfATensorNamesItAndItsPlace) {
  const std::string path = fresh_directory("named.safetensors");
  write_safetensors(path, all_kinds());
  std::string content = read_file(path);
  content.back() = static_cast<char>(content.back() ^ 1);
  EXPECT_THAT(error_when_parsing(content),
              HasSubstr("tensor 'u8' (bytes " + std::to_string(content.size() - 3) + " to " +
                        std::to_string(content.size()) + ") is damaged"));
}

struct BadHeader {
  std::string header;
  std::string data;
  std::string says;
};

TEST(Safetensors, HeadersThatDoNotHoldTogetherAreRefused) {
  const auto tensor = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return R"({"w":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  };
  const std::string four(4, '\0');
  const BadHeader cases[] = {
      {"", "", "does not begin with '{'"},
      {" {}", "", "does not begin with '{'"},
      {"[]", "", "does not begin with '{'"},
      {"{", "", "not valid JSON at byte"},
      {"{} x", "", "not valid JSON at byte"},
      {std::string("{}\0garbage", 10), "", "zero byte at byte 10"},
      {"{\"\xff\":{}}", "", "not valid JSON"},
      {R"({"w":3})", "", "the entry 'w' is a number"},
      {R"({"w":{}})", "", "tensor 'w' lacks"},
      {R"({"w":{"dtype":"F32","shape":[1]}})", four, "tensor 'w' lacks"},
      {R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})", four, "unknown key 'x'"},
      {R"({"w":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", four, "'dtype' twice"},
      {R"({"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
       four, "the name 'w' occurs twice"},
      {R"({"__metadata__":{"a":"b","a":"c"}})", "", "the metadata key 'a' occurs twice"},
      {R"({"__metadata__":{"a":1}})", "", "the metadata key 'a' is a number, not a string"},
      {R"({"__metadata__":{"a":{}}})", "", "the metadata key 'a' is an object, not a string"},
      {tensor("F16", "[2]", "[0,4]"), four, "its dtype is 'F16'"},
      {tensor("F32", "1", "[0,4]"), four, "'shape' of tensor 'w' cannot be a number"},
      {tensor("F32", "[[1]]", "[0,4]"), four, "'shape' of tensor 'w' cannot be a list"},
      {tensor("F32", "[-1]", "[0,4]"), four, "cannot be a negative number"},
      {tensor("F32", "[1.0]", "[0,4]"), four, "no 64-bit integer"},
      {tensor("F32", "[1]", "[0,18446744073709551616]"), four, "no 64-bit integer"},
      {tensor("F32", "[1]", "[0]"), four, "has 1 data_offsets"},
      {tensor("F32", "[1]", "[0,4,8]"), four, "more than 2 data_offsets"},
      {tensor("F32", "[1]", "[4,0]"), four, "do not fit float32[1]"},
      {tensor("F32", "[2]", "[0,4]"), four, "do not fit float32[2]"},
      {tensor("F32", "[18446744073709551615]", "[0,4]"), four, "its shape has an extent of"},
      {tensor("F32", "[4294967296,4294967296]", "[0,4]"), four, "more than 2^56 elements"},
      {tensor("I64", "[2305843009213693952]", "[0,0]"), "",
       "its shape has an extent of"},  // 2^61 x 8 bytes is 0 in 64 bits
      {tensor("I64", "[72057594037927936]", "[0,0]"), "", "do not fit int64"},
      {tensor("F32", "[1]", "[4,8]"), four + four, "there is a gap"},
      {tensor("F32", "[2]", "[0,8]"), four, "is truncated: tensor 'w' needs bytes"},
      {tensor("F32", "[1099511627776]", "[0,4398046511104]"), four, "is truncated: tensor 'w' needs bytes"},
      {tensor("BOOL", "[4]", "[0,4]"), std::string("\1\0\2\0", 4), "dtype BOOL but has the value 2 at byte"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
       four, "two tensors overlap"},
      {R"({"__metadata__":{"moxing.version":"1"}})", "", "its checksum is not where moxing writes it"},
  };
  for (const BadHeader& bad : cases)
    EXPECT_THAT(error_when_parsing(file_of(bad.header, bad.data)), HasSubstr(bad.says)) << bad.header;
  std::string many_dimensions = "[1";
  for (int i = 0; i < 64; ++i) many_dimensions += ",1";
  EXPECT_THAT(error_when_parsing(file_of(tensor("F32", many_dimensions + "]", "[0,4]"), four)),
              HasSubstr("64 dimensions"));
  EXPECT_THAT(error_when_parsing(file_of(std::string(1000000, '['), "")),
              HasSubstr("does not begin with '{'"));
  EXPECT_THAT(error_when_parsing(file_of("{\"w\":" + std::string(1000000, '['), "")),
              HasSubstr("a list instead of an object"));
}

TEST(Safetensors, AnImpossibleHeaderLengthAllocatesNothing) {
  EXPECT_THAT(error_when_parsing(std::string(8, '\xff')), HasSubstr("more than the 100000000 allowed"));
  EXPECT_THAT(error_when_parsing(std::string("\x00\xe1\xf5\x05\0\0\0\0{}", 10)),
              HasSubstr("header of 100000000 bytes"));
  EXPECT_THAT(error_when_parsing("short"), HasSubstr("it has 5 bytes"));
}

TEST(Safetensors, WhatTorchSaveWritesIsNamed) {
  using namespace std::string_literals;
  for (const std::string& begin : {"PK\x03\x04\0\0\b\b\0\0"s, "\x80\x02\x8a\x0al\xfc\x9c\x46"s})
    EXPECT_THAT(error_when_parsing(begin),
                HasSubstr("safetensors.torch.save_file(torch.load('weights.safetensors'"));
}

TEST(Safetensors, WhatCannotBeWrittenIsRefusedAndLeavesNoFile) {
  const std::string path = fresh_directory("refused.safetensors");
  const Array one = Array::scalar(1.f);
  const auto write = [&](const std::vector<NamedArray>& tensors,
                         const std::map<std::string, std::string>& metadata = {}) {
    write_safetensors(path, tensors, metadata);
  };
  EXPECT_THROW(write({{"a", one}, {"a", one}}), InvalidArgument);
  EXPECT_THROW(write({{"a", Array()}}), InvalidArgument);
  EXPECT_THROW(write({{"__metadata__", one}}), InvalidArgument);
  EXPECT_THROW(write({{"\xff", one}}), InvalidArgument);
  EXPECT_THROW(write({}, {{"moxing.version", "1"}}), InvalidArgument);
  EXPECT_THROW(write({}, {{"key", "\xff"}}), InvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Safetensors, WhatIsNoFileIsRefusedWithoutWaiting) {
  EXPECT_THROW(read_safetensors(fresh_directory("missing")), NotFound);
  EXPECT_THROW(read_safetensors("/"), IoError);
  const std::string fifo = fresh_directory("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_THROW(read_safetensors(fifo), IoError);
  std::filesystem::remove(fifo);
}

TEST(SafetensorsReaderTest, ReadsAnyPartOfATensorAndFindsDamageAnywhere) {
  const std::string path = fresh_directory("parts.safetensors");
  const Array b = Array::from<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  write_safetensors(path, std::vector<NamedArray>{{"b", b}, {"a", Array::scalar(int64_t{7})}},
                    {{"step", "9"}});
  {
    const SafetensorsReader reader(path);
    ASSERT_EQ(reader.tensors().size(), 2U);
    EXPECT_EQ(reader.tensors()[1].name, "b");
    EXPECT_EQ(reader.tensors()[1].type, b.type());
    EXPECT_EQ(reader.metadata().at("step"), "9");
    std::vector<float> part(3);
    reader.read(1, 2 * sizeof(float), std::as_writable_bytes(std::span(part)));
    EXPECT_EQ(part, (std::vector<float>{3, 4, 5}));
    EXPECT_THROW(reader.read(1, 4 * sizeof(float), std::as_writable_bytes(std::span(part))), InvalidArgument);
    EXPECT_THROW(reader.read(1, ~uint64_t{0}, std::as_writable_bytes(std::span(part))), InvalidArgument);
    reader.verify();
  }
  const std::string good = read_file(path);
  for (size_t i = good.size() - b.bytes(); i < good.size(); ++i) {
    std::string damaged = good;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    write_file_atomically(path, damaged);
    EXPECT_THROW(SafetensorsReader(path).verify(), DataError);
  }
  write_file_atomically(path, good.substr(0, good.size() - 1));
  EXPECT_THROW(SafetensorsReader{path}, DataError);
  EXPECT_THROW(SafetensorsReader{path + ".none"}, NotFound);
}

// Each tensor fits into the memory, and all of them do not.
TEST(Safetensors, OfHolesAreNotRead) {
  const size_t bytes = available_memory() / 2 + 1;
  const std::string tensor = "{\"dtype\":\"U8\",\"shape\":[" + std::to_string(bytes) + "],\"data_offsets\":[";
  const std::string middle = std::to_string(bytes), end = std::to_string(2 * bytes);
  const std::string header =
      "{\"a\":" + tensor + "0," + middle + "]},\"b\":" + tensor + middle + "," + end + "]}}";
  const TemporaryDirectory directory;
  const std::string path = directory.write("holes.safetensors", file_of(header, ""));
  std::filesystem::resize_file(path, 8 + header.size() + 2 * bytes);
  EXPECT_THAT(message_of<IoError>([&] { read_safetensors(path); }),
              AllOf(HasSubstr("'" + path + "' has " + end + " bytes"), HasSubstr("not read")));
}

}  // namespace
}  // namespace mox
