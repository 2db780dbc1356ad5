#include "moxing/file/open_file.h"

#include <gmock/gmock.h>

#include "moxing/file/file.h"
#include "runtime/base/error.h"
#include "tests/moxing/file/store_fixture.h"

namespace mox::file {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class OpenFile : public testing::TestWithParam<std::string> {
 protected:
  std::string at(const std::string& name) const {
    return GetParam() == "path" ? directory_.file(name) : GetParam() + "://bucket/top/" + name;
  }
  StoreFixture store_;
  TemporaryDirectory directory_;
};

INSTANTIATE_TEST_SUITE_P(Stores, OpenFile,
                         testing::Values(std::string("path"), std::string("s3"), std::string("obs")),
                         [](const auto& info) { return info.param; });

TEST_P(OpenFile, Reads) {
  write(at("a"), "one\ntwo\n\nlast");
  File file(at("a"));
  std::string line;
  ASSERT_TRUE(file.readline(line));
  EXPECT_EQ(line, "one\n");
  EXPECT_EQ(file.tell(), 4);
  EXPECT_EQ(file.read(2), "tw");
  EXPECT_THAT(file.readlines(), ElementsAre("o\n", "\n", "last"));
  EXPECT_FALSE(file.readline(line));
  EXPECT_EQ(file.read(), "");
  EXPECT_EQ(file.seek(-4, File::From::kEnd), 9);
  EXPECT_EQ(file.read(), "last");
  EXPECT_EQ(file.seek(4), 4);
  EXPECT_EQ(file.seek(4, File::From::kCurrent), 8);
  EXPECT_EQ(file.read(100), "\nlast");
  EXPECT_EQ(file.seek(100), 100);
  EXPECT_EQ(file.read(), "");
  EXPECT_THROW(file.seek(-1), InvalidArgument);
  EXPECT_THROW(file.write("x"), FailedPrecondition);
  file.close();
  file.close();
  EXPECT_THROW(file.read(), FailedPrecondition);
  EXPECT_THROW(File(at("none"), "rb"), NotFound);
  EXPECT_THROW(File(at("none"), "r+"), NotFound);
}

TEST_P(OpenFile, ReadsLargeFilesInRanges) {
  const std::string content = random_bytes((20 << 20) + 17);
  write(at("large"), content);
  File file(at("large"), "rb");
  std::string all;
  for (std::string piece; !(piece = file.read(1'000'003)).empty();) all += piece;
  EXPECT_TRUE(all == content);
  file.seek((8 << 20) - 5);
  EXPECT_EQ(file.read(10), content.substr((8 << 20) - 5, 10));
  file.seek(0);
  std::string lines;
  for (std::string line; file.readline(line);) lines += line;
  EXPECT_TRUE(lines == content);
}

// Those of /proc are as long as what they say, whatever the system tells of their size.
TEST(OpenFileTest, ReadsFilesThatSayTheyAreEmpty) {
  const std::string name = "/proc/self/cmdline", content = read(name);
  ASSERT_FALSE(content.empty());
  EXPECT_EQ(File(name).read(), content);
  EXPECT_EQ(File(name).read(5), content.substr(0, 5));
  File file(name);
  std::string all;
  for (std::string piece; !(piece = file.read(7)).empty();) all += piece;
  EXPECT_EQ(all, content);
  EXPECT_EQ(File("/proc/self/maps").readlines().empty(), false);
}

TEST_P(OpenFile, Writes) {
  write(at("a"), "what was there");
  {
    File file(at("a"), "w");
    file.write("one\n");
    file.writelines({"two\n", "three"});
    EXPECT_EQ(file.tell(), 13);
    file.seek(4);
    file.write("TWO");
    EXPECT_THROW(file.read(), FailedPrecondition);
  }
  EXPECT_EQ(read(at("a")), "one\nTWO\nthree");
  File(at("empty"), "wb").close();
  EXPECT_EQ(read(at("empty")), "");
}

TEST_P(OpenFile, AppendsWhateverSeekSays) {
  {
    File file(at("new"), "a");
    file.write("one");
    file.seek(0);
    file.write("two");
    file.flush();
    EXPECT_EQ(read(at("new")), "onetwo");
    file.write("three");
  }
  EXPECT_EQ(read(at("new")), "onetwothree");
  File both(at("new"), "a+");
  EXPECT_EQ(both.read(), "");
  both.seek(3);
  EXPECT_EQ(both.read(3), "two");
  both.write("four");
  both.close();
  EXPECT_EQ(read(at("new")), "onetwothreefour");
}

TEST_P(OpenFile, ReadsAndWrites) {
  write(at("a"), "0123456789");
  {
    File file(at("a"), "r+b");
    EXPECT_EQ(file.read(3), "012");
    file.write("xyz");
    EXPECT_EQ(file.read(2), "67");
    file.seek(12);
    file.write("!");
  }
  EXPECT_EQ(read(at("a")), std::string("012xyz6789\0\0!", 13));
  File file(at("a"), "w+");
  file.write("new");
  file.seek(0);
  EXPECT_EQ(file.read(), "new");
}

TEST_P(OpenFile, LargeObjectsAreEdited) {
  std::string content = random_bytes(17 << 20);
  write(at("a"), content);
  {
    File file(at("a"), "r+");
    file.seek(5);
    file.write("edited");
  }
  content.replace(5, 6, "edited");
  EXPECT_TRUE(read(at("a")) == content);
}

TEST_P(OpenFile, RefusesOtherModes) {
  write(at("a"), "");
  for (const char* mode : {"", "x", "rw", "b", "r++", "+r", "rbb", "br", "w-"})
    EXPECT_THROW(File(at("a"), mode), InvalidArgument) << mode;
  EXPECT_THROW(File(at("d/"), "w"), FailedPrecondition);
}

TEST_P(OpenFile, AnExceptionLeavesAnObjectAsItWasAndALocalFileAsFarAsItCame) {
  write(at("a"), "old");
  try {
    File file(at("a"), "w");
    file.write("half of the n");
    throw std::runtime_error("on its way");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(read(at("a")), GetParam() == "path" ? "half of the n" : "old");
}

TEST(LocalFileTest, LargerThanTheMemoryIsNotReadAtOnce) {
  TemporaryDirectory directory;
  write(directory.file("a"), "abc");
  std::filesystem::resize_file(directory.file("a"), uintmax_t{1} << 43);
  File file(directory.file("a"));
  EXPECT_EQ(file.read(3), "abc");
  EXPECT_THAT(message_of<IoError>([&] { file.read(); }), testing::HasSubstr("read it in pieces"));
  EXPECT_EQ(file.tell(), 3);
}

TEST(ObjectTest, ThatIsReplacedWhileItIsReadIsAnError) {
  StoreFixture store;
  write("s3://bucket/large", random_bytes(20 << 20));
  File file("s3://bucket/large");
  file.read(10);
  write("s3://bucket/large", random_bytes(20 << 20, 2));
  EXPECT_THROW(file.read(), IoError);
}

}  // namespace
}  // namespace mox::file
