#include "moxing/formats/cifar.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <ctime>

#include "moxing/formats/internal/pickle_text.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/data/pipeline.h"
#include "tests/support/temporary_directory.h"

namespace mox::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string image_bytes(int seed) {
  std::string bytes;
  for (int i = 0; i < 3072; ++i) bytes += static_cast<char>(i * 7 + seed);
  return bytes;
}

std::string binary_batch(const std::vector<int>& labels) {
  std::string bytes;
  for (int label : labels) bytes += static_cast<char>(label) + image_bytes(label);
  return bytes;
}

std::string little_endian(uint64_t value, int bytes) {
  std::string result;
  for (int i = 0; i < bytes; ++i) result += static_cast<char>(value >> (8 * i));
  return result;
}

// What Python 2's cPickle.dump({'data': array, 'labels': [...]}, file, 2) writes.
std::string pickled_batch(const std::vector<int>& labels,
                          const std::string& call = "cnumpy.core.multiarray\n_reconstruct\n",
                          const std::string& dtype = "u1") {
  using std::string_literals::operator""s;
  std::string data, list;
  for (int label : labels) {
    data += image_bytes(label);
    list += "K"s + static_cast<char>(label);
  }
  const std::string shape = "M" + little_endian(labels.size(), 2) + "M" + little_endian(3072, 2) + "\x86";
  const std::string type = "cnumpy\ndtype\nq\x08U" + std::string(1, static_cast<char>(dtype.size())) + dtype +
                           "K\0K\1\x87R(K\3U\1|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb"s;
  return "\x80\2}q\1(U\6labelsq\2]q\3("s + list + "eU\4dataq\4"s + call +
         "q\5cnumpy\nndarray\nq\6K\0\x85U\1b\x87Rq\7(K\1"s + shape + type + "\x89T" +
         little_endian(data.size(), 4) + data + "tbu.";
}

std::vector<int32_t> labels_of(const CifarBatch& batch) {
  const auto values = batch.labels.values<int32_t>();
  return {values.begin(), values.end()};
}

TEST(CifarBinary, ReadsRecords) {
  const CifarBatch batch = parse_cifar_binary(as_bytes(binary_batch({3, 9})), 10, "x");
  EXPECT_THAT(labels_of(batch), ElementsAre(3, 9));
  EXPECT_EQ(batch.images.values<uint8_t>()[3072 + 5], static_cast<uint8_t>(5 * 7 + 9));
  std::string fine = std::string("\x13\x42", 2) + image_bytes(0);
  EXPECT_THAT(labels_of(parse_cifar_binary(as_bytes(fine), 100, "x")), ElementsAre(0x42));
}

TEST(CifarBinary, RefusesDamage) {
  const auto message = [](const std::string& bytes) {
    return message_of<DataError>([&] { parse_cifar_binary(as_bytes(bytes), 10, "dir/x"); });
  };
  EXPECT_THAT(message(binary_batch({1, 2}).substr(0, 4000)),
              AllOf(HasSubstr("dir/x"), HasSubstr("offset 3073")));
  EXPECT_THAT(message(""), HasSubstr("0 bytes"));
  EXPECT_THAT(message(binary_batch({1, 10})), AllOf(HasSubstr("offset 3073"), HasSubstr("label 10")));
}

TEST(CifarPython, ReadsPython2Pickles) {
  const CifarBatch batch = parse_cifar_python(as_bytes(pickled_batch({3, 9})), 10, "x");
  EXPECT_THAT(labels_of(batch), ElementsAre(3, 9));
  const CifarBatch expected = parse_cifar_binary(as_bytes(binary_batch({3, 9})), 10, "x");
  EXPECT_TRUE(std::ranges::equal(batch.images.values<uint8_t>(), expected.images.values<uint8_t>()));
}

// As Python and NumPy write the same samples in each protocol (tests/fixtures/make_cifar_pickles.py).
TEST(CifarPython, ReadsEveryProtocol) {
  const CifarBatch expected = parse_cifar_binary(as_bytes(binary_batch({3, 9})), 10, "x");
  std::vector<std::string> names = {"array_of_labels_2", "array_of_labels_5", "numbers_of_numpy_4",
                                    "read_only_5"};
  for (const char protocol : {'0', '1', '2', '3', '4', '5'})
    for (const char* kind : {"protocol_", "fortran_"}) names.push_back(std::string(kind) + protocol);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const std::string content = read_file(MOX_SOURCE_DIR "/tests/fuzz/corpus/pickle/" + name);
    const CifarBatch batch = parse_cifar_python(as_bytes(content), 10, name);
    EXPECT_THAT(labels_of(batch), ElementsAre(3, 9));
    EXPECT_TRUE(std::ranges::equal(batch.images.values<uint8_t>(), expected.images.values<uint8_t>()));
    for (size_t length = 0; length < content.size(); length += 61)
      EXPECT_THROW(parse_cifar_python(as_bytes(content.substr(0, length)), 10, name), DataError) << length;
  }
  EXPECT_THAT(message_of<DataError>([] { parse_cifar_python(as_bytes("\x80\6}."), 10, "x"); }),
              HasSubstr("protocols 0 to 5"));
  EXPECT_THAT(message_of<DataError>([] { parse_cifar_python(as_bytes("text"), 10, "x"); }),
              HasSubstr("this is no pickle"));
}

// Python 2's strings of protocol 0.
TEST(PickleText, IsDecoded) {
  using internal::bytes_of_repr, internal::utf8_of_raw_unicode, internal::integer_of;
  using internal::integer_of_bytes;
  EXPECT_EQ(bytes_of_repr("'a\\x00\\n\\'\"'"), std::string("a\0\n'\"", 5));
  for (const char* malformed : {"", "'", "a", "'a", "'a\"", "'\\'", "'\\x0'", "'\\q'"})
    EXPECT_FALSE(bytes_of_repr(malformed)) << malformed;
  EXPECT_EQ(utf8_of_raw_unicode("\xe9\\u20ac\\U0001F600\\"), "\u00e9\u20ac\U0001F600\\");
  EXPECT_FALSE(utf8_of_raw_unicode("\\u20"));
  EXPECT_FALSE(utf8_of_raw_unicode("\\Uffffffff"));
  EXPECT_EQ(integer_of("-12L"), -12);
  for (const char* malformed : {"", "L", "1x", "99999999999999999999"}) EXPECT_FALSE(integer_of(malformed));
  EXPECT_EQ(integer_of_bytes("\xfe\xff", true, false), -2);
  EXPECT_EQ(integer_of_bytes("\xfe\xff", false, true), 0xfeff);
  EXPECT_EQ(integer_of_bytes("", true, false), 0);
}

TEST(CifarPython, ExecutesNothing) {
  const auto message = [](const std::string& bytes) {
    return message_of<DataError>([&] { parse_cifar_python(as_bytes(bytes), 10, "dir/x"); });
  };
  EXPECT_THAT(message(std::string("\x80\x02"
                                  "cposix\nsystem\nU\x04true\x85R.")),
              AllOf(HasSubstr("dir/x"), HasSubstr("'posix.system'"), HasSubstr("nothing is executed")));
  EXPECT_THAT(message(pickled_batch({1}, "cbuiltins\neval\n")), HasSubstr("'builtins.eval'"));
  EXPECT_THAT(message(pickled_batch({1}, "cnumpy\nndarray\n")), HasSubstr("numpy.ndarray is called"));
  EXPECT_THAT(message(pickled_batch({1}, "cnumpy.core.multiarray\n_reconstruct\n", "f4")), HasSubstr("'f4'"));
}

TEST(CifarPython, RefusesDamage) {
  const std::string good = pickled_batch({1, 2});
  for (size_t length = 0; length < good.size(); length += length < 200 ? 1 : 97)
    EXPECT_THROW(parse_cifar_python(as_bytes(good.substr(0, length)), 10, "x"), DataError) << length;
  EXPECT_THROW(parse_cifar_python(as_bytes(good + "x"), 10, "x"), DataError);
  EXPECT_THROW(parse_cifar_python(as_bytes(pickled_batch({1, 10})), 10, "x"), DataError);
  for (size_t i = 0; i < 150; ++i) {
    std::string damaged = good;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x08);
    try {
      parse_cifar_python(as_bytes(damaged), 10, "x");
    } catch (const DataError&) {
    }
  }
}

std::string repeated(const std::string& unit, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += unit;
  return result;
}

// One text, shape or tuple may be an argument of many calls, of five bytes each.
TEST(CifarPython, CallsThatMakeMuchOfLittleAreRefused) {
  using std::string_literals::operator""s;
  const auto message = [](const std::string& bytes) {
    return message_of<DataError>([&] { parse_cifar_python(as_bytes("\x80\2"s + bytes), 10, "dir/x"); });
  };
  const int size = 8192, calls = 1000;
  const std::string text = "X" + little_endian(size, 4) + std::string(size, 'a');
  EXPECT_THAT(
      message("c_codecs\nencode\nq\0"s + text + "U\6latin1\x86q\2"s + repeated("h\0h\2R"s, calls) + "."),
      AllOf(HasSubstr("dir/x"), HasSubstr("calls make more than 2 times its")));
  const std::string array = "cnumpy\ndtype\nU\2u1\x85Rq\0U\1aq\1K\1q\2("s;
  const std::string of_buffer = "tq\3cnumpy.core.numeric\n_frombuffer\nq\5(h\1h\0h\3U\1Ctq\6"s;
  EXPECT_THAT(message(array + repeated("h\2"s, 65) + of_buffer + "h\5h\6R."s), HasSubstr("65 axes"));
  EXPECT_THAT(message(array + repeated("h\2"s, 64) + of_buffer + repeated("h\5h\6R"s, calls) + "."),
              HasSubstr("calls make more than 2 times its"));
  EXPECT_THAT(message("cnumpy.core.multiarray\n_reconstruct\nq\0K\1q\1("s + repeated("h\1"s, size) + "tq\2" +
                      repeated("h\0h\2R"s, calls) + "."),
              HasSubstr("a call with 8192 arguments"));
}

// Each key was copied: two terabytes of them.
TEST(CifarPython, ALongKeyOfManyValuesIsNotCopied) {
  using std::string_literals::operator""s;
  const int size = 4 << 20, keys = 500'000;
  const std::string text = "X" + little_endian(size, 4) + std::string(size, 'a');
  const std::clock_t begin = std::clock();  // of this process alone
  const std::string bytes = "\x80\2}("s + text + "q\0K\1q\1"s + repeated("h\0h\1"s, keys) + "u.";
  EXPECT_THAT(message_of<DataError>([&] { parse_cifar_python(as_bytes(bytes), 10, "dir/x"); }),
              HasSubstr("must have 'data'"));
  EXPECT_LT(std::clock() - begin, 20 * CLOCKS_PER_SEC);
}

TEST(Cifar, ReadsADirectoryIntoBatches) {
  TemporaryDirectory directory;
  for (int i = 1; i <= 5; ++i)
    directory.write("cifar-10-batches-bin/data_batch_" + std::to_string(i) + ".bin", binary_batch({i, 0}));
  directory.write("test_batch", pickled_batch({7}));
  Pipeline pipeline(cifar10(directory.path(), "train").batch(10), {});
  Batch batch;
  ASSERT_TRUE(pipeline.next(&batch));
  EXPECT_THAT(std::as_const(batch.components[1]).values<int32_t>(),
              ElementsAre(1, 0, 2, 0, 3, 0, 4, 0, 5, 0));
  EXPECT_EQ(batch.components[0].shape(), (Shape{10, 3, 32, 32}));
  EXPECT_NEAR(batch.components[0].values<float>()[40], static_cast<float>(uint8_t{40 * 7 + 1 - 256}) / 255,
              1e-6);
  EXPECT_THAT(labels_of(read_cifar(directory.path(), 10, "test")), ElementsAre(7));
  EXPECT_THAT(message_of<NotFound>([&] { cifar100(directory.path(), "train"); }),
              HasSubstr("cifar-100-binary"));
  EXPECT_THROW(cifar10(directory.path(), "validation"), InvalidArgument);
}

TEST(Cifar, SaysThatABatchIsThereTwice) {
  TemporaryDirectory directory;
  for (int i = 1; i <= 5; ++i)
    directory.write("data_batch_" + std::to_string(i) + ".bin", binary_batch({i, 0}));
  const auto said = [&] {
    testing::internal::CaptureStderr();
    read_cifar(directory.path(), 10, "train");
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(said(), "");
  directory.write("data_batch_4.bin", binary_batch({2, 0}));
  EXPECT_THAT(said(),
              AllOf(HasSubstr("data_batch_2.bin' and '"), HasSubstr("data_batch_4.bin' have the same")));
}

}  // namespace
}  // namespace mox::data
