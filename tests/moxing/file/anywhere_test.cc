// The whole of file.h, the same on a local disk and in object stores.
#include <gmock/gmock.h>

#include "moxing/file/copy.h"
#include "moxing/file/file.h"
#include "runtime/base/error.h"
#include "tests/moxing/file/store_fixture.h"
#include "tests/support/message_of.h"

namespace mox::file {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Anywhere : public testing::TestWithParam<std::string> {
 protected:
  Anywhere() {
    const std::string kind = GetParam();
    if (kind == "path")
      root_ = directory_.path();
    else if (kind == "file")
      root_ = "file://" + directory_.path();
    else
      root_ = kind + "://bucket/top";
    make_dirs(root_);
  }
  std::string at(const std::string& name) const { return root_ + "/" + name; }
  bool remote() const { return is_remote(root_); }

  StoreFixture store_;
  TemporaryDirectory directory_;
  std::string root_;
};

INSTANTIATE_TEST_SUITE_P(Stores, Anywhere,
                         testing::Values(std::string("path"), std::string("file"), std::string("s3"),
                                         std::string("obs")),
                         [](const auto& info) { return info.param; });

TEST_P(Anywhere, WritesAndReads) {
  for (const size_t size : {0u, 1u, 5000u, 17u << 20}) {
    const std::string content = random_bytes(size);
    write(at("new/a"), content);
    EXPECT_EQ(read(at("new/a")), content);
    EXPECT_EQ(stat(at("new/a")).length, static_cast<int64_t>(size));
    EXPECT_EQ(get_size(at("new/a")), static_cast<int64_t>(size));
  }
  EXPECT_THROW(read(at("none")), NotFound);
  EXPECT_THROW(read(at("new")), FailedPrecondition);
  EXPECT_THROW(write(at("x/"), ""), FailedPrecondition);
}

TEST_P(Anywhere, Appends) {
  append(at("log"), "one\n");
  append(at("log"), "two\n");
  append(at("log"), "");
  EXPECT_EQ(read(at("log")), "one\ntwo\n");
  if (remote()) {
    append_remote(at("log"), "three\n");
    EXPECT_EQ(read(at("log")), "one\ntwo\nthree\n");
  } else {
    EXPECT_THROW(append_remote(at("log"), "three\n"), InvalidArgument);
  }
}

TEST_P(Anywhere, AppendsToWhatWasWrittenWhole) {
  write(at("log"), "one\n");  // OBS appends to what was made by appending alone
  append(at("log"), "two\n");
  EXPECT_EQ(read(at("log")), "one\ntwo\n");
}

TEST_P(Anywhere, KnowsFilesFromDirectories) {
  write(at("d/a"), "abc");
  EXPECT_TRUE(exists(at("d/a")));
  EXPECT_TRUE(exists(at("d")));
  EXPECT_TRUE(is_directory(at("d")));
  EXPECT_TRUE(is_directory(at("d/")));
  EXPECT_FALSE(is_directory(at("d/a")));
  EXPECT_FALSE(exists(at("d/b")));
  EXPECT_FALSE(exists(at("dd")));
  EXPECT_TRUE(stat(at("d")).is_directory);
  EXPECT_THROW(stat(at("none")), NotFound);
  const auto age = std::chrono::system_clock::now() - stat(at("d/a")).mtime;
  EXPECT_LT(age, std::chrono::hours(1));
  if (remote()) {
    EXPECT_EQ(stat(at("d/a")).etag, "900150983cd24fb0d6963f7d28e17f72");
  }
}

TEST_P(Anywhere, MakesDirectories) {
  make_dirs(at("a/b/c"));
  make_dirs(at("a/b/c"));
  EXPECT_TRUE(is_directory(at("a/b/c")));
  EXPECT_THROW(mk_dir(at("a/b/c")), FailedPrecondition);
  mk_dir(at("a/b/d"));
  EXPECT_TRUE(is_directory(at("a/b/d")));
  EXPECT_THAT(list_directory(at("a"), {.recursive = true}), ElementsAre("b", "b/c", "b/d"));
  if (!remote()) {
    EXPECT_THROW(mk_dir(at("none/d")), NotFound);
  }
}

TEST_P(Anywhere, Lists) {
  for (const char* name : {"d/b", "d/a", "d/s/x", "d/s/t/y", "e"}) write(at(name), name);
  make_dirs(at("d/empty"));
  store_.server.set_page(1);
  EXPECT_THAT(list_directory(at("d")), ElementsAre("a", "b", "empty", "s"));
  EXPECT_THAT(list_directory(at("d/")), ElementsAre("a", "b", "empty", "s"));
  EXPECT_THAT(list_directory(at("d"), {.recursive = true}),
              ElementsAre("a", "b", "empty", "s", "s/t", "s/t/y", "s/x"));
  EXPECT_THAT(list_directory(at("d"), {.recursive = true, .skip_file = true}),
              ElementsAre("empty", "s", "s/t"));
  EXPECT_THAT(list_directory(at("d"), {.recursive = true, .skip_dir = true}),
              ElementsAre("a", "b", "s/t/y", "s/x"));
  EXPECT_THAT(list_directory(at("d/empty")), IsEmpty());
  EXPECT_THROW(list_directory(at("d/a")), FailedPrecondition);
  EXPECT_THROW(list_directory(at("none")), NotFound);
  const std::vector<DirectoryEntry> entries = scan_dir(at("d"), {.recursive = true, .skip_dir = true});
  ASSERT_EQ(entries.size(), 4u);
  EXPECT_EQ(read(entries[2].url), "d/s/t/y");
  EXPECT_EQ(entries[2].stat.length, 7);
  EXPECT_EQ(get_size(at("d"), true), 3 + 3 + 5 + 7);
  EXPECT_THROW(get_size(at("d")), FailedPrecondition);

  const std::vector<WalkEntry> walked = walk(at("d"));
  ASSERT_EQ(walked.size(), 4u);
  EXPECT_THAT(walked[0].directories, ElementsAre("empty", "s"));
  EXPECT_THAT(walked[0].files, ElementsAre("a", "b"));
  EXPECT_THAT(walked[1].files, IsEmpty());
  EXPECT_THAT(walked[2].directories, ElementsAre("t"));
  EXPECT_THAT(walked[3].files, ElementsAre("y"));
}

TEST_P(Anywhere, Globs) {
  for (const char* name : {"a1.txt", "a2.txt", "b1.txt", "s/a3.txt", "s/t/a4.txt", ".hidden.txt"})
    write(at(name), "");
  const auto names = [&](const std::string& pattern) {
    std::vector<std::string> found = glob(at(pattern));
    const std::string root = GetParam() == "file" ? directory_.path() : root_;
    for (std::string& name : found) name = name.substr(root.size() + 1);
    return found;
  };
  EXPECT_THAT(names("a*.txt"), ElementsAre("a1.txt", "a2.txt"));
  EXPECT_THAT(names("?1.txt"), ElementsAre("a1.txt", "b1.txt"));
  EXPECT_THAT(names("[!a]*.txt"), ElementsAre("b1.txt"));
  EXPECT_THAT(names("*/a*"), ElementsAre("s/a3.txt"));
  EXPECT_THAT(names("**/a*.txt"), ElementsAre("a1.txt", "a2.txt", "s/a3.txt", "s/t/a4.txt"));
  EXPECT_THAT(names("none*"), IsEmpty());
  EXPECT_THAT(names("s*/"), ElementsAre("s/"));
  EXPECT_THAT(names("**/"), ElementsAre("s/", "s/t/"));
  EXPECT_THAT(names("a1.txt/*"), IsEmpty());
  EXPECT_THAT(glob(at("a1.txt")), ElementsAre(at("a1.txt")));
}

// Each pass through them would double what there is to look through.
TEST(LinksTest, ThatLeadInACircleEndASearch) {
  TemporaryDirectory directory;
  directory.write("d/a.txt", "");
  for (int i = 0; i < 4; ++i)
    std::filesystem::create_directory_symlink("..", directory.file("d/up" + std::to_string(i)));
  std::filesystem::create_directory_symlink("d", directory.file("other"));
  EXPECT_THAT(message_of<IoError>([&] { glob(directory.file("**/*.txt")); }),
              HasSubstr("leads to a directory that it lies in"));
  for (int i = 0; i < 4; ++i) remove(directory.file("d/up" + std::to_string(i)));
  EXPECT_THAT(glob(directory.file("**/*.txt")),
              ElementsAre(directory.file("d/a.txt"), directory.file("other/a.txt")));
}

TEST_P(Anywhere, RemovesAndSaysWhatStays) {
  write(at("d/a"), "");
  write(at("d/s/b"), "");
  make_dirs(at("d/empty"));
  EXPECT_THROW(remove(at("none")), NotFound);
  EXPECT_THROW(remove(at("none"), true), NotFound);
  EXPECT_THROW(remove(at("d")), FailedPrecondition);
  EXPECT_TRUE(exists(at("d/a")));
  remove(at("d/a"));
  EXPECT_FALSE(exists(at("d/a")));
  remove(at("d/empty"));
  EXPECT_FALSE(exists(at("d/empty")));
  remove(at("d"), true);
  EXPECT_FALSE(exists(at("d")));
  EXPECT_THROW(remove(remote() ? GetParam() + "://bucket" : "/", true), FailedPrecondition);
}

TEST_P(Anywhere, Renames) {
  write(at("d/a"), "abc");
  make_dirs(at("d/empty"));
  write(at("x"), "old");
  rename(at("d"), at("e"));
  EXPECT_FALSE(exists(at("d")));
  EXPECT_EQ(read(at("e/a")), "abc");
  EXPECT_TRUE(is_directory(at("e/empty")));
  rename(at("e/a"), at("x"));
  EXPECT_EQ(read(at("x")), "abc");
  EXPECT_THROW(rename(at("none"), at("y")), NotFound);
  make_dirs(at("f"));
  EXPECT_THROW(rename(at("e"), at("f")), FailedPrecondition);
  rename(at("x"), at("new/deeper/x"));
  EXPECT_EQ(read(at("new/deeper/x")), "abc");
  EXPECT_TRUE(exists(at("e")));
}

// Where large and small letters are different names.
TEST_P(Anywhere, RenamesToOtherLetters) {
  write(at("d/a"), "abc");
  rename(at("d/a"), at("d/A"));
  EXPECT_THAT(list_directory(at("d")), ElementsAre("A"));
  EXPECT_EQ(read(at("d/A")), "abc");
  write(at("d/a"), "small");
  rename(at("d"), at("D"));
  EXPECT_FALSE(exists(at("d")));
  EXPECT_THAT(list_directory(at("D")), ElementsAre("A", "a"));
  rename(at("D/a"), at("D/A"));
  EXPECT_EQ(read(at("D/A")), "small");
  EXPECT_FALSE(exists(at("D/a")));
}

TEST_P(Anywhere, NamesOfOtherKindsAreRefused) {
  EXPECT_THROW(read(""), InvalidArgument);
  EXPECT_THROW(read("http://host/x"), InvalidArgument);
  EXPECT_THROW(read("s3:/bucket/x"), InvalidArgument);
  for (const char* slip : {"s3:bucket/x", "S3:x", "obs:bucket", "s3//bucket/x", "obs//bucket"})
    EXPECT_THROW(write(slip, "a"), InvalidArgument) << slip;
  EXPECT_THROW(read("s3:///x"), InvalidArgument);
  EXPECT_THROW(read("file://host/x"), InvalidArgument);
  EXPECT_EQ(local_path("FILE:///x"), "/x");
  EXPECT_THROW(read(std::string("a\0b", 3)), InvalidArgument);
}

TEST(LinksTest, AreFilesForRemoval) {
  TemporaryDirectory directory;
  directory.write("real/a", "abc");
  std::filesystem::create_directory_symlink(directory.file("real"), directory.file("link"));
  std::filesystem::create_symlink("nowhere", directory.file("broken"));
  EXPECT_EQ(read(directory.file("link/a")), "abc");
  remove(directory.file("link"));
  EXPECT_TRUE(exists(directory.file("real/a")));
  remove(directory.file("broken"), true);
  EXPECT_THAT(list_directory(directory.path()), ElementsAre("real"));
  std::filesystem::create_directory_symlink(directory.path(), directory.file("real/up"));
  EXPECT_THROW(list_directory(directory.path(), {.recursive = true}), IoError);
}

TEST(NamesTest, AnEmptyOneIsLocal) {
  EXPECT_FALSE(is_remote(""));
  EXPECT_TRUE(is_remote("s3://bucket/x"));
  EXPECT_THROW(is_remote("s3:/bucket/x"), InvalidArgument);
}

// As of a file of this machine: what does not fit into memory is not read into it.
TEST(AnywhereTest, ObjectsLargerThanTheMemoryAreNotRead) {
  StoreFixture store;
  write("s3://bucket/a", "abc");
  store.server.set_claimed_size(size_t{1} << 45);
  for (const auto& call : {+[] { read("s3://bucket/a"); }, +[] { append("s3://bucket/a", "d"); }})
    EXPECT_THAT(message_of<IoError>(call),
                testing::AllOf(testing::HasSubstr("'s3://bucket/a' has 35184372088832 bytes"),
                               testing::HasSubstr("it is not read")));
}

}  // namespace
}  // namespace mox::file
