#include "moxing/formats/idx_dataset.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>
#include <filesystem>

#include "runtime/base/error.h"
#include "runtime/data/pipeline.h"
#include "tests/support/temporary_directory.h"

namespace mox {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string big_endian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

std::string idx_file(uint8_t code, const std::vector<uint32_t>& dims, const std::string& values) {
  std::string bytes{'\0', '\0', static_cast<char>(code), static_cast<char>(dims.size())};
  for (uint32_t dim : dims) bytes += big_endian(dim);
  return bytes + values;
}

std::string gzip(const std::string& content) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, content.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

Array parse(const std::string& bytes) {
  return data::parse_idx(std::as_bytes(std::span(bytes.data(), bytes.size())), "some/file");
}

std::string refusal(const std::string& bytes) {
  return message_of<DataError>([&] { parse(bytes); });
}

// Three images of 2 x 2 pixels and their labels.
const std::string kPixels{"\x00\x01\x02\x03\x10\x20\x30\x40\xff\xfe\xfd\xfc", 12};
const std::string kImages = idx_file(0x08, {3, 2, 2}, kPixels);
const std::string kLabels = idx_file(0x08, {3}, std::string("\x07\x00\x09", 3));

class IdxFiles : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& content) const {
    return temporary_.write(name, content);
  }
  const TemporaryDirectory temporary_;
  const std::string directory_ = temporary_.path();
};

TEST(Idx, ReadsEveryTypeThatHasADType) {
  const Array bytes = parse(idx_file(0x08, {2, 3}, "abcdef"));
  EXPECT_EQ(bytes.type(), (TensorType{DType::kUInt8, Shape{2, 3}}));
  EXPECT_EQ(bytes.values<uint8_t>()[5], 'f');
  const Array integers = parse(idx_file(0x0C, {2}, big_endian(1) + big_endian(0xFFFFFFFE)));
  EXPECT_EQ(integers.values<int32_t>()[0], 1);
  EXPECT_EQ(integers.values<int32_t>()[1], -2);
  const Array floats = parse(idx_file(0x0D, {1}, big_endian(0x40490fdb)));
  EXPECT_FLOAT_EQ(floats.values<float>()[0], 3.14159265f);
  EXPECT_EQ(parse(idx_file(0x08, {0, 4}, "")).shape(), (Shape{0, 4}));
}

TEST(Idx, ReadsGzipByContentInOneMemberOrSeveral) {
  EXPECT_EQ(parse(gzip(kImages)).shape(), (Shape{3, 2, 2}));
  const Array two = parse(gzip(kImages.substr(0, 9)) + gzip(kImages.substr(9)));
  EXPECT_EQ(two.values<uint8_t>()[11], 0xfc);
}

TEST(Idx, RefusesAWrongHeader) {
  EXPECT_THAT(refusal(""), AllOf(HasSubstr("'some/file', offset 0"), HasSubstr("4 bytes expected, 0 given")));
  EXPECT_THAT(refusal(std::string("\x00\x00\x08", 3)), HasSubstr("4 bytes expected, 3 given"));
  EXPECT_THAT(refusal("PNG file"),
              AllOf(HasSubstr("wrong magic number 0x504e4720"), HasSubstr("two zero bytes")));
  EXPECT_THAT(refusal(idx_file(0x0A, {1}, "a")),
              AllOf(HasSubstr("offset 2"), HasSubstr("0x0a is no type code")));
  EXPECT_THAT(refusal(idx_file(0x0E, {1}, "abcdefgh")), HasSubstr("float64"));
  EXPECT_THAT(refusal(idx_file(0x08, {}, "a")), HasSubstr("no dimensions"));
  EXPECT_THAT(refusal(kImages.substr(0, 10)),
              AllOf(HasSubstr("offset 10"), HasSubstr("12 bytes expected, 6 given")));
}

TEST(Idx, RefusesAWrongLength) {
  EXPECT_THAT(refusal(kImages.substr(0, kImages.size() - 1)),
              HasSubstr("needs 12 bytes after the header, 11 given"));
  EXPECT_THAT(refusal(kImages + "x"), AllOf(HasSubstr("offset 28"), HasSubstr("goes on after the 12 bytes")));
  EXPECT_THAT(refusal(gzip(kImages.substr(0, kImages.size() - 1))),
              AllOf(HasSubstr("offset 27"), HasSubstr("needs 12 bytes after the header, 11 given")));
  EXPECT_THAT(refusal(gzip(kImages + "x")), HasSubstr("goes on after"));
  for (size_t length = 0; length < kImages.size(); ++length) refusal(kImages.substr(0, length));
}

TEST(Idx, RefusesDimensionsThatTheFileCannotHoldBeforeAllocating) {
  EXPECT_THAT(refusal(idx_file(0x08, {0xffffffff, 0xffffffff, 0xffffffff}, "")),
              HasSubstr("over 72057594037927936"));
  // Found by fuzzing: no values, but extents whose product no shape can hold.
  EXPECT_THAT(refusal(idx_file(0x08, {0, 0xfaffffff, 0xffffffff}, "")), HasSubstr("over 72057594037927936"));
  EXPECT_THAT(refusal(idx_file(0x08, {0xffffffff, 1000}, "")),
              HasSubstr("more than the 12 of this file can hold"));
  EXPECT_THAT(refusal(gzip(idx_file(0x0D, {1 << 30, 4}, ""))), HasSubstr("compressed file can hold"));
}

TEST(Idx, RefusesDamagedGzip) {
  const std::string whole = gzip(kImages);
  for (size_t length = 2; length < whole.size(); ++length)
    EXPECT_THAT(refusal(whole.substr(0, length)), HasSubstr("compressed offset")) << length;
  std::string wrong_sum = whole;
  wrong_sum[whole.size() - 8] ^= 1;
  EXPECT_THAT(refusal(wrong_sum), HasSubstr("incorrect data check"));
  EXPECT_THAT(refusal(whole + "tail"), HasSubstr("4 bytes that are not gzip"));
  // Any flipped byte is an error or leaves the values as they are (some header fields of gzip mean nothing).
  const Array expected = parse(kImages);
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] ^= 0x55;
    try {
      EXPECT_EQ(std::memcmp(parse(damaged).data(), expected.data(), 12), 0) << at;
    } catch (const DataError&) {
    }
  }
}

TEST_F(IdxFiles, GivesScaledImagesAndLabels) {
  for (const bool compressed : {false, true}) {
    const std::string images = write("images", compressed ? gzip(kImages) : kImages),
                      labels = write("labels", kLabels);
    const Dataset dataset = data::idx(images, labels);
    EXPECT_EQ(dataset.signature(),
              (std::vector<TensorType>{{DType::kFloat32, Shape{4}}, {DType::kInt32, Shape{}}}));
    EXPECT_EQ(dataset.cardinality(), 3);
    Pipeline pipeline(dataset.batch(3), {});
    Batch batch;
    ASSERT_TRUE(pipeline.next(&batch));
    for (size_t i = 0; i < 12; ++i)
      EXPECT_EQ(batch.components[0].values<float>()[i],
                static_cast<float>(static_cast<uint8_t>(kPixels[i])) / 255.0f);
    EXPECT_EQ(batch.components[1].values<int32_t>()[2], 9);
  }
}

TEST_F(IdxFiles, ScalesEveryByteToTheNearestFloat) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  const Dataset dataset = data::idx(write("i", idx_file(0x08, {1, 256}, all)),
                                    write("l", idx_file(0x08, {1}, std::string(1, '\0'))));
  Pipeline pipeline(dataset.batch(1), {});
  Batch batch;
  ASSERT_TRUE(pipeline.next(&batch));
  for (size_t i = 0; i < 256; ++i)
    EXPECT_EQ(batch.components[0].values<float>()[i], static_cast<float>(i) / 255.0f) << i;
}

TEST_F(IdxFiles, GivesRawBytesAndTheShapeThatIsAskedFor) {
  const std::string images = write("images", kImages), labels = write("labels", kLabels);
  const Dataset dataset = data::idx(images, labels, {.raw = true, .image_shape = Shape{1, 2, 2}});
  EXPECT_EQ(dataset.signature()[0], (TensorType{DType::kUInt8, Shape{1, 2, 2}}));
  Pipeline pipeline(dataset.batch(2), {});
  Batch batch;
  ASSERT_TRUE(pipeline.next(&batch));
  EXPECT_EQ(std::memcmp(batch.components[0].data(), kPixels.data(), 8), 0);
  EXPECT_THAT(
      message_of<InvalidArgument>([&] {
        data::idx(images, labels, {.image_shape = Shape{3, 3}});
      }),
      AllOf(HasSubstr("[3, 3] has 9 elements"), HasSubstr("have 4"), HasSubstr("idx_dataset_test.cc")));
}

TEST_F(IdxFiles, RefusesFilesThatDoNotFitTogether) {
  const std::string images = write("images", kImages), labels = write("labels", kLabels);
  EXPECT_THAT(message_of<DataError>([&] { data::idx(images, write("two", idx_file(8, {2}, "ab"))); }),
              AllOf(HasSubstr("3 images"), HasSubstr("2 labels")));
  EXPECT_THAT(message_of<DataError>([&] { data::idx(labels, images); }), HasSubstr("two dimensions or more"));
  EXPECT_THAT(message_of<DataError>([&] { data::idx(images, images); }), HasSubstr("one dimension"));
  EXPECT_THAT(message_of<DataError>([&] { data::idx(images, labels, {.num_classes = 9}); }),
              AllOf(HasSubstr("offset 10"), HasSubstr("label 9 of sample 2"), HasSubstr("expected 0 to 8")));
  EXPECT_THAT(message_of<InvalidArgument>([&] { data::idx(images, labels, {.num_classes = 0}); }),
              HasSubstr("num_classes"));
  EXPECT_THAT(message_of<DataError>([&] {
                data::idx(images,
                          write("negative",
                                idx_file(0x0C, {3}, big_endian(1) + big_endian(0xffffffff) + big_endian(1))),
                          {.num_classes = 10});
              }),
              AllOf(HasSubstr("offset 12"), HasSubstr("label -1 of sample 1")));
  EXPECT_THAT(message_of<NotFound>([&] { data::idx(directory_ + "/none", labels); }), HasSubstr("/none"));
}

TEST_F(IdxFiles, MnistFindsItsFilesAndSaysWhatItTried) {
  const std::string missing = message_of<NotFound>([&] { data::mnist(directory_, "train"); });
  EXPECT_THAT(missing, AllOf(HasSubstr(directory_), HasSubstr("train-images-idx3-ubyte,"),
                             HasSubstr("train-images-idx3-ubyte.gz"), HasSubstr("dataset-fashion-mnist"),
                             HasSubstr("/usr/share/datasets/fashion-mnist")));
  write("train-images-idx3-ubyte", kImages);
  write("train-labels-idx1-ubyte.gz", gzip(kLabels));
  write("t10k-images.idx3-ubyte", kImages);
  write("t10k-labels.idx1-ubyte", idx_file(0x08, {3}, std::string("\x07\x00\x0a", 3)));
  EXPECT_EQ(data::mnist(directory_, "train").cardinality(), 3);
  EXPECT_THAT(message_of<DataError>([&] { data::mnist(directory_, "test"); }), HasSubstr("label 10"));
  EXPECT_EQ(data::mnist(directory_, "t10k", {.num_classes = 11}).cardinality(), 3);
  EXPECT_THAT(message_of<InvalidArgument>([&] { data::mnist(directory_, "val"); }),
              HasSubstr("'val' is unknown"));
}

TEST_F(IdxFiles, ACursorIsBoundToTheContentNotToTheDirectory) {
  const std::string labels = write("labels", kLabels);
  const auto batches = [&](const std::string& images) { return data::idx(images, labels).batch(2); };
  const std::string cursor = Pipeline(batches(write("a", kImages)), {}).cursor();
  Pipeline moved(batches(write("b", gzip(kImages))), {}, cursor);
  std::string other = kImages;
  other.back() ^= 1;
  EXPECT_THROW(Pipeline(batches(write("c", other)), {}, cursor), FailedPrecondition);
}

TEST(FashionMnist, IsReadWholeWhereItIsInstalled) {
  const std::string directory = "/usr/share/datasets/fashion-mnist";
  if (!std::filesystem::exists(directory)) GTEST_SKIP() << "needs dataset-fashion-mnist";
  for (const auto& [split, size] : {std::pair("train", 60000), std::pair("test", 10000)}) {
    const Dataset dataset = data::mnist(directory, split);
    EXPECT_EQ(dataset.cardinality(), size);
    std::vector<int> counts(10);
    Pipeline pipeline(dataset.batch(1000), {});
    for (Batch batch; pipeline.next(&batch);)
      for (int32_t label : batch.components[1].values<int32_t>()) ++counts[label];
    for (int count : counts) EXPECT_EQ(count, size / 10);
  }
}

}  // namespace
}  // namespace mox
