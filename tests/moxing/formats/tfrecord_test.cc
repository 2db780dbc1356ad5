#include "moxing/formats/tfrecord.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "tests/support/temporary_directory.h"

namespace mox::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string write_records(const TemporaryDirectory& directory, const std::string& name,
                          const std::vector<std::string>& records) {
  TfRecordWriter writer(directory.file(name));
  for (const std::string& record : records) writer.write(as_bytes(record));
  writer.close();
  return directory.file(name);
}

std::string text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<std::string> read_all(const TfRecordFiles& files) {
  std::vector<std::string> records;
  RecordBuffer buffer;
  for (int64_t i = 0; i < files.size(); ++i) records.push_back(text(files.read(i, &buffer)));
  return records;
}

// RFC 3720, appendix B.4.
TEST(Crc32c, AgreesWithThePublishedValues) {
  EXPECT_EQ(crc32c(as_bytes(std::string(32, '\0'))), 0x8a9136aau);
  EXPECT_EQ(crc32c(as_bytes(std::string(32, '\xff'))), 0x62a8ab43u);
  std::string rising;
  for (char i = 0; i < 32; ++i) rising += i;
  EXPECT_EQ(crc32c(as_bytes(rising)), 0x46dd794eu);
  EXPECT_EQ(crc32c(as_bytes("123456789")), 0xe3069283u);
  EXPECT_EQ(crc32c(as_bytes("56789"), crc32c(as_bytes("1234"))), 0xe3069283u);
}

// A file that TensorFlow 2 wrote (one record, "moxing") would hold exactly these bytes: the length, its
// masked checksum, the text, its masked checksum.
TEST(TfRecord, HasTheDocumentedBytes) {
  TemporaryDirectory directory;
  const std::string bytes = read_file(write_records(directory, "a", {"moxing"}));
  ASSERT_EQ(bytes.size(), 8u + 4 + 6 + 4);
  EXPECT_EQ(bytes.substr(0, 8), std::string("\x06\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(bytes.substr(12, 6), "moxing");
  const auto masked = [](uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; };
  uint32_t given;
  std::memcpy(&given, bytes.data() + 8, 4);
  EXPECT_EQ(given, masked(crc32c(as_bytes(bytes.substr(0, 8)))));
  std::memcpy(&given, bytes.data() + 18, 4);
  EXPECT_EQ(given, masked(crc32c(as_bytes("moxing"))));
}

TEST(TfRecord, ReadsWhatWasWritten) {
  TemporaryDirectory directory;
  const std::string large(3 << 20, 'x');
  write_records(directory, "b-1", {"one", "", large});
  write_records(directory, "b-2", {});
  write_records(directory, "b-3", {"last"});
  const auto files = TfRecordFiles::open(match_files(directory.file("b-*")));
  EXPECT_THAT(read_all(*files), ElementsAre("one", "", large, "last"));
  EXPECT_THAT(files->locate(3), AllOf(HasSubstr("b-3"), HasSubstr("offset 0"), HasSubstr("record 0")));
}

TEST(TfRecord, ReadsMoreFilesThanItKeepsOpen) {
  TemporaryDirectory directory;
  std::vector<std::string> expected;
  for (int i = 100; i < 400; ++i) {
    expected.push_back(std::to_string(i));
    write_records(directory, "c" + expected.back(), {expected.back()});
  }
  EXPECT_EQ(read_all(*TfRecordFiles::open(match_files(directory.file("c*")), {.cache_index = false})),
            expected);
}

TEST(TfRecordIndex, IsCachedAndMadeAnewWhenTheFileChanges) {
  TemporaryDirectory directory;
  const std::string path = write_records(directory, "d", {"one", "two"});
  const TfRecordOptions options{.cache_index = true, .index_directory = directory.file("index")};
  EXPECT_EQ(TfRecordFiles::open({path}, options)->size(), 2);
  ASSERT_FALSE(std::filesystem::is_empty(directory.file("index")));
  EXPECT_EQ(TfRecordFiles::open({path}, options)->size(), 2);
  write_records(directory, "d", {"one", "two", "three"});
  EXPECT_EQ(TfRecordFiles::open({path}, options)->size(), 3);
}

TEST(TfRecordIndex, SurvivesDamage) {
  TemporaryDirectory directory;
  const std::string path = write_records(directory, "e", {"one", "two"});
  EXPECT_EQ(TfRecordFiles::open({path})->size(), 2);
  const std::string good = read_file(path + ".mox-index");
  for (size_t i = 0; i < good.size(); ++i) {
    std::string damaged = good;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    directory.write("e.mox-index", damaged);
    EXPECT_THAT(read_all(*TfRecordFiles::open({path})), ElementsAre("one", "two")) << i;
  }
  directory.write("e.mox-index", "");
  EXPECT_EQ(TfRecordFiles::open({path})->size(), 2);
  EXPECT_EQ(read_file(path + ".mox-index"), good);
}

// One record where there are two, under a checksum that is right.
TEST(TfRecordIndex, ThatIsForgedIsNamed) {
  TemporaryDirectory directory;
  const std::string path = write_records(directory, "f", {"one", "two"});
  TfRecordFiles::open({path});
  std::string index = read_file(path + ".mox-index");
  constexpr size_t kChecked = 12, kOffsets = 32, kHeader = 40;
  index.erase(kHeader + sizeof(uint64_t), sizeof(uint64_t));
  index[kOffsets] = 2;
  const uint32_t checksum = crc32c(as_bytes(index).subspan(kChecked));
  std::memcpy(index.data() + 8, &checksum, sizeof checksum);
  directory.write("f.mox-index", index);
  const auto files = TfRecordFiles::open({path});
  ASSERT_EQ(files->size(), 1);  // it was taken
  EXPECT_THAT(message_of<DataError>([&] { read_all(*files); }),
              HasSubstr("f.mox-index': if the file is whole"));
}

TEST(TfRecordIndex, WithHolesIsNotRead) {
  TemporaryDirectory directory;
  const std::string path = write_records(directory, "h", {"one", "two"});
  directory.write("h.mox-index", "MOXTFIX1");
  std::filesystem::resize_file(directory.file("h.mox-index"), uint64_t{1} << 40);
  EXPECT_THAT(read_all(*TfRecordFiles::open({path})), ElementsAre("one", "two"));
}

// A record of a terabyte, which the disk does not hold.
TEST(TfRecord, WithHolesIsNotRead) {
  TemporaryDirectory directory;
  const uint64_t length = uint64_t{1} << 40;
  std::string head(reinterpret_cast<const char*>(&length), sizeof length);
  const uint32_t checksum = masked_crc32c(std::as_bytes(std::span(head)));
  head.append(reinterpret_cast<const char*>(&checksum), sizeof checksum);
  directory.write("h", head);
  std::filesystem::resize_file(directory.file("h"), length + 16);
  const auto files = TfRecordFiles::open({directory.file("h")});
  EXPECT_THAT(message_of<IoError>([&] { read_all(*files); }),
              AllOf(HasSubstr("/h' has 1099511627792 bytes to be read at once, more than"),
                    HasSubstr("of memory that this process may have")));
}

TEST(TfRecord, TellsEveryFlippedBit) {
  TemporaryDirectory directory;
  const std::string path = write_records(directory, "f", {"one", "three"});
  const std::string good = read_file(path);
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string damaged = good;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    directory.write("g", damaged);
    EXPECT_THAT(message_of<DataError>(
                    [&] { read_all(*TfRecordFiles::open({directory.file("g")}, {.cache_index = false})); }),
                AllOf(HasSubstr("/g'"), HasSubstr("offset"), HasSubstr("checksum")))
        << bit;
    EXPECT_THROW(parse_tfrecords(as_bytes(damaged), "g"), DataError) << bit;
  }
}

TEST(TfRecord, TellsEveryTruncation) {
  TemporaryDirectory directory;
  const std::string good = read_file(write_records(directory, "h", {"one", "three"}));
  const size_t border = 16 + 3;
  for (size_t length = 1; length < good.size(); ++length) {
    if (length == border) continue;
    directory.write("i", good.substr(0, length));
    EXPECT_THAT(message_of<DataError>([&] { TfRecordFiles::open({directory.file("i")}); }),
                AllOf(HasSubstr("/i'"), HasSubstr("cut off")))
        << length;
  }
}

TEST(TfRecord, RefusesARecordOf2To60BytesWithoutAllocatingIt) {
  const uint64_t length = uint64_t{1} << 60;
  std::string bytes(reinterpret_cast<const char*>(&length), 8);
  const uint32_t checksum = masked_crc32c(as_bytes(bytes));
  bytes.append(reinterpret_cast<const char*>(&checksum), 4).append(100, 'x');
  TemporaryDirectory directory;
  directory.write("j", bytes);
  EXPECT_THAT(message_of<DataError>([&] { TfRecordFiles::open({directory.file("j")}); }),
              AllOf(HasSubstr("1152921504606846976"), HasSubstr("does not fit")));
}

TEST(TfRecord, TellsAFileThatShrinksWhileItIsOpen) {
  TemporaryDirectory directory;
  const std::string path = write_records(directory, "k", {"one", "two"});
  const auto files = TfRecordFiles::open({path});
  std::filesystem::resize_file(path, 25);
  RecordBuffer buffer;
  EXPECT_EQ(text(files->read(0, &buffer)), "one");
  EXPECT_THAT(message_of<DataError>([&] { files->read(1, &buffer); }), HasSubstr("shorter"));
}

TEST(TfRecordWriter, LeavesNothingBehindUnlessClosed) {
  TemporaryDirectory directory;
  {
    TfRecordWriter writer(directory.file("l"));
    writer.write(as_bytes("one"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
  EXPECT_THROW(TfRecordWriter(directory.file("none/l")), IoError);
}

TEST(MatchFiles, ListsPatternsSortedAndOnce) {
  TemporaryDirectory directory;
  for (const char* name : {"t-2", "t-1", "t-1.mox-index", "t-2.mox-index.tmp.123.0", "u"})
    directory.write(name, "");
  const std::string all = directory.file("t-*") + "," + directory.file("u") + "," + directory.file("t-1");
  EXPECT_THAT(match_files(all),
              ElementsAre(directory.file("t-1"), directory.file("t-2"), directory.file("u")));
  EXPECT_THROW(match_files(directory.file("v*")), NotFound);
  EXPECT_THROW(match_files(""), InvalidArgument);
}

TEST(MatchFiles, TakesTheShardsOfOneConversion) {
  TemporaryDirectory directory;
  const auto write = [&](const std::string& name) { return directory.write(name, "x"); };
  const std::string first = write("train-00000-of-00002"), second = write("train-00001-of-00002");
  const std::string pattern = directory.path() + "/train-*";
  const std::vector<std::string> both{first, second};
  write("train-00001-of-00002.bak");
  write("train-00001-of-00002~");
  write("train-extra-00000-of-00001");
  write("train-notes");
  EXPECT_EQ(match_files(pattern), both);
  const std::string left_over = write("train-00000-of-00001");
  EXPECT_THAT(message_of<DataError>([&] { match_files(pattern); }), testing::HasSubstr("different sets"));
  EXPECT_EQ(match_files(first + "," + second), both);
  std::filesystem::remove(left_over);
  // Copies under a name that looks like a shard's.
  for (const char* name : {"train-1-of-2", "train-00001-of-00002.crc"}) {
    const std::string again = write(name);
    EXPECT_THAT(message_of<DataError>([&] { match_files(pattern); }),
                AllOf(HasSubstr(second), HasSubstr(again), HasSubstr("both shard 1")));
    std::filesystem::remove(again);
  }
  std::filesystem::remove(first);
  EXPECT_THAT(message_of<DataError>([&] { match_files(pattern); }),
              testing::HasSubstr("train-00000-of-00002"));
}

TEST(MatchFiles, LeavesOutTheMarksOfOtherTools) {
  TemporaryDirectory directory;
  const std::string first = directory.write("train-00000-of-00002", "a"),
                    second = directory.write("train-00001-of-00002", "b");
  directory.write("train-00001-of-00002.done", "");
  EXPECT_THAT(match_files(directory.path() + "/train-*"), ElementsAre(first, second));
  directory.write("train-00000-of-00002", "");  // a shard may have no records
  directory.write("train-00000-of-00002.done", "");
  EXPECT_THAT(match_files(directory.path() + "/train-*"), ElementsAre(first, second));
}

// What is a pattern in the name of a directory would match others.
TEST(MatchFiles, TakesADirectoryAsItIsCalled) {
  TemporaryDirectory directory;
  for (const char* name : {"dir[1]", "a,b", "x*", "q?", "back\\slash"}) {
    SCOPED_TRACE(name);
    const std::string set = directory.file(name);
    const std::vector<std::string> both{directory.write(std::string(name) + "/train-00000-of-00002", "x"),
                                        directory.write(std::string(name) + "/train-00001-of-00002", "x")};
    for (const char* other :
         {"train-00000-of-00002.mox-index", "train-00001-of-00002.bak", ".train-x", "test-0"})
      directory.write(std::string(name) + "/" + other, "");
    directory.write(std::string(name) + "/train-extra-00000-of-00001", "x");
    for (const char* other : {"dir1", "a", "xy", "qq", "backslash"})
      directory.write(std::string(other) + "/train-00000-of-00001", "x");
    EXPECT_EQ(match_files(set, "train-*"), both);
    EXPECT_EQ(match_files(set + "/", "train-0000[01]-of-*"),
              (std::vector{set + "/train-00000-of-00002", set + "/train-00001-of-00002"}));
    EXPECT_THAT(match_files(set, "*-*").size(), 3U);
    std::filesystem::remove(both[0]);
    EXPECT_THAT(message_of<DataError>([&] { match_files(set, "train-*"); }),
                HasSubstr("1 of 2 shards of '" + set + "/train' are missing"));
  }
  EXPECT_THAT(message_of<NotFound>([&] { match_files(directory.file("none"), "train-*"); }),
              HasSubstr("no file matches '" + directory.file("none/train-*'")));
  EXPECT_THROW(match_files(directory.file("dir1/train-00000-of-00001"), "train-*"), NotFound);
  EXPECT_THROW(match_files(directory.file("dir1"), "test-*"), NotFound);
  for (const char* name : {"", "dir1/train-*"})
    EXPECT_THAT(message_of<InvalidArgument>([&] { match_files(directory.path(), name); }),
                HasSubstr("without '/', given is '" + std::string(name) + "'"));
}

TEST(TfRecord, SaysWhichFilesHaveNoRecords) {
  TemporaryDirectory directory;
  const std::string full = directory.file("full"), empty = directory.write("empty", "");
  {
    TfRecordWriter writer(full);
    writer.write(as_bytes("one"));
    writer.close();
  }
  testing::internal::CaptureStderr();
  EXPECT_EQ(TfRecordFiles::open({full, empty}, {.cache_index = false})->size(), 1);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("1 of 2 files have no records: '" + empty));
  testing::internal::CaptureStderr();
  TfRecordFiles::open({full}, {.cache_index = false});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

// A shard that was copied under the number of another one.
TEST(TfRecord, SaysWhichFilesHaveTheSameRecords) {
  TemporaryDirectory directory;
  const auto said_of = [](const std::vector<std::string>& paths) {
    testing::internal::CaptureStderr();
    TfRecordFiles::open(paths, {.cache_index = false});
    return testing::internal::GetCapturedStderr();
  };
  std::vector<std::string> records;
  for (int i = 0; i < 100; ++i) records.push_back("record " + std::to_string(i));
  const std::string first = write_records(directory, "t-00000-of-00003", records);
  const std::string copy = write_records(directory, "t-00001-of-00003", records);
  const std::string again = write_records(directory, "t-00002-of-00003", records);
  EXPECT_THAT(said_of({first, copy}), AllOf(HasSubstr("'" + first + "' and '" + copy + "' have the same"),
                                            HasSubstr("count twice"), testing::Not(HasSubstr("more files"))));
  EXPECT_THAT(said_of({first, copy, again}), HasSubstr("as 1 more files have"));
  // Of the same lengths and other contents, or empty both.
  std::swap(records[0], records[9]);
  const std::string swapped = write_records(directory, "u", records);
  for (std::string& record : records) record[0] = 's';
  EXPECT_EQ(said_of({first, swapped, write_records(directory, "v", records)}), "");
  EXPECT_THAT(said_of({first, directory.write("e1", ""), directory.write("e2", "")}),
              testing::Not(HasSubstr("have the same")));
}

TEST(TfRecord, SaysThatAFileIsCompressedOrEmpty) {
  TemporaryDirectory directory;
  const auto refusal = [&](const std::string& content) {
    const std::string path = directory.write("x", content);
    return message_of<DataError>([&] { TfRecordFiles::open({path}, {.cache_index = false}); });
  };
  EXPECT_THAT(refusal(std::string("\x1f\x8b\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 18)),
              testing::HasSubstr("gunzip"));
  EXPECT_THAT(refusal("\x78\x9c" + std::string(20, 'x')), testing::HasSubstr("zlib"));
  EXPECT_THAT(refusal(""), testing::HasSubstr("no records"));
}

}  // namespace
}  // namespace mox::data
