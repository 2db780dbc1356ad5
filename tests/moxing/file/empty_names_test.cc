// Keys of a store in which two slashes follow each other: directories of no name.
#include <gmock/gmock.h>

#include "moxing/file/copy.h"
#include "moxing/file/file.h"
#include "moxing/file/internal/url.h"
#include "tests/moxing/file/store_fixture.h"

namespace mox::file {
namespace {

using testing::ElementsAre;

class EmptyNames : public testing::Test {
 protected:
  EmptyNames() {
    for (const char* key : {"dir//x", "dir/x", "dir/keep", "dir/a//y", "dir/a///z"})
      store_.server.put("bucket", key, key);
  }
  StoreFixture store_;
};

TEST_F(EmptyNames, AreDirectoriesOfTheirOwn) {
  std::vector<std::string> urls;
  for (const DirectoryEntry& entry : scan_dir("s3://bucket/dir", {.recursive = true, .skip_file = true})) {
    urls.push_back(entry.url);
    EXPECT_TRUE(is_directory(entry.url)) << entry.url;
  }
  EXPECT_THAT(urls, ElementsAre("s3://bucket/dir//", "s3://bucket/dir/a", "s3://bucket/dir/a//",
                                "s3://bucket/dir/a///"));
  for (const DirectoryEntry& entry : scan_dir("s3://bucket/dir", {.recursive = true, .skip_dir = true}))
    EXPECT_EQ(read(entry.url), "dir/" + entry.name);
  EXPECT_THAT(list_directory(urls[0]), ElementsAre("x"));
  EXPECT_THAT(list_directory(urls[2]), ElementsAre("", "y"));
  EXPECT_THAT(list_directory(urls[3]), ElementsAre("z"));
}

TEST_F(EmptyNames, OfAWholeBucket) {
  store_.server.put("bucket", "/top", "top");
  const std::vector<DirectoryEntry> entries = scan_dir("s3://bucket", {.skip_file = true});
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].url, "s3://bucket//");
  EXPECT_THAT(list_directory(entries[0].url), ElementsAre("top"));
}

TEST_F(EmptyNames, AreWalkedThrough) {
  std::vector<std::string> directories;
  for (const WalkEntry& entry : walk("s3://bucket/dir")) {
    directories.push_back(entry.directory);
    const std::string slash = entry.directory.ends_with('/') ? "" : "/";
    for (const std::string& file : entry.files) EXPECT_TRUE(exists(entry.directory + slash + file)) << file;
  }
  EXPECT_THAT(directories, ElementsAre("s3://bucket/dir", "s3://bucket/dir//", "s3://bucket/dir/a",
                                       "s3://bucket/dir/a//", "s3://bucket/dir/a///"));
}

TEST_F(EmptyNames, AreSearched) {
  EXPECT_THAT(glob("s3://bucket/dir/*/x"), ElementsAre("s3://bucket/dir//x"));
  EXPECT_THAT(glob("s3://bucket/dir/*/"), ElementsAre("s3://bucket/dir//", "s3://bucket/dir/a/"));
  EXPECT_THAT(glob("s3://bucket/dir//*"), ElementsAre("s3://bucket/dir//x"));
  EXPECT_THAT(glob("s3://bucket/dir/**"),
              ElementsAre("s3://bucket/dir//", "s3://bucket/dir//x", "s3://bucket/dir/a",
                          "s3://bucket/dir/a//", "s3://bucket/dir/a///", "s3://bucket/dir/a///z",
                          "s3://bucket/dir/a//y", "s3://bucket/dir/keep", "s3://bucket/dir/x"));
}

// As somebody does with what a listing has given.
TEST_F(EmptyNames, AreRemovedWithoutTheirNeighbours) {
  const std::vector<DirectoryEntry> entries = scan_dir("s3://bucket/dir", {.skip_file = true});
  ASSERT_EQ(entries[0].name, "");
  remove(entries[0].url, true);
  EXPECT_THAT(store_.server.keys("bucket"), ElementsAre("dir/a///z", "dir/a//y", "dir/keep", "dir/x"));
}

TEST_F(EmptyNames, AreCopiedAndSynchronised) {
  for (const char* key : {"dir/empty//", "dir/other//"}) store_.server.put("bucket", key, "");
  sync("s3://bucket/dir", "s3://bucket/to");
  EXPECT_THAT(list_directory("s3://bucket/to", {.recursive = true}),
              testing::ElementsAreArray(list_directory("s3://bucket/dir", {.recursive = true})));
  EXPECT_TRUE(store_.server.content("bucket", "to/empty//"));
  make_dirs("s3://bucket/to");  // what stands for the whole, and is nobody's to remove
  make_dirs("s3://bucket/to/other");
  remove("s3://bucket/dir//", true);
  remove("s3://bucket/dir/other//");
  make_dirs("s3://bucket/dir/other");
  EXPECT_EQ(sync("s3://bucket/dir", "s3://bucket/to", true).removed, 1);
  EXPECT_THAT(store_.server.keys("bucket"), testing::IsSupersetOf({"to/", "to/other/", "to/x", "to/keep"}));
  for (const char* key : {"to//x", "to/other//"}) EXPECT_FALSE(store_.server.content("bucket", key)) << key;
}

TEST(EmptyNamesTest, AreNoneOfAFileSystem) {
  using internal::join_directory;
  using internal::parse_url;
  EXPECT_EQ(to_string(join_directory(parse_url("/a"), "b")), "/a/b");
  EXPECT_EQ(to_string(join_directory(parse_url("s3://bucket/a/"), "b")), "s3://bucket/a/b");
  EXPECT_EQ(to_string(join_directory(parse_url("s3://bucket/a"), "")), "s3://bucket/a//");
  EXPECT_EQ(to_string(join_directory(parse_url("s3://bucket"), "")), "s3://bucket//");
}

}  // namespace
}  // namespace mox::file
