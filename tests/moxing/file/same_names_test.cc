// A file and a directory of one name, as a store may have them.
#include <gmock/gmock.h>

#include "moxing/file/copy.h"
#include "moxing/file/file.h"
#include "runtime/base/error.h"
#include "tests/moxing/file/store_fixture.h"

namespace mox::file {
namespace {

using testing::ElementsAre;

class SameNames : public testing::Test {
 protected:
  SameNames() {
    store_.server.put("bucket", "data", "file");
    store_.server.put("bucket", "data/h", "hh");
    store_.server.put("bucket", "data/sub/w", "w");
  }
  std::string here(const std::string& name) const { return directory_.file(name); }
  StoreFixture store_;
  TemporaryDirectory directory_;
  const std::string data_ = "s3://bucket/data";
};

TEST_F(SameNames, AreToldApart) {
  EXPECT_TRUE(is_directory(data_));
  EXPECT_FALSE(stat(data_).is_directory);
  EXPECT_EQ(read(data_), "file");
  EXPECT_EQ(get_size(data_), 4);
  EXPECT_EQ(get_size(data_, true), 3);
  copy(data_, here("one"));
  EXPECT_EQ(read(here("one")), "file");
  remove(data_);
  EXPECT_THAT(store_.server.keys("bucket"), ElementsAre("data/h", "data/sub/w"));
}

TEST_F(SameNames, TheDirectoryIsCopied) {
  for (const std::string& to : {here("to"), std::string("s3://bucket/to")}) {
    EXPECT_EQ(copy_parallel(data_, to).files, 2);
    EXPECT_THAT(list_directory(to, {.recursive = true}), ElementsAre("h", "sub", "sub/w"));
  }
  write(here("to/other"), "");
  EXPECT_EQ(sync(data_, here("to"), true).removed, 1);
}

TEST_F(SameNames, ADirectoryIsCopiedBesideAFile) {
  const std::string to = "s3://bucket/to";
  store_.server.put("bucket", "to", "file");
  EXPECT_EQ(copy_parallel(data_, to).files, 2);
  write(to + "/other", "");
  const SyncReport report = sync(data_, to, true);
  EXPECT_EQ(report.copied.same_files, 2);
  EXPECT_EQ(report.removed, 1);
  EXPECT_THAT(list_directory(to, {.recursive = true}), ElementsAre("h", "sub", "sub/w"));
  EXPECT_EQ(read(to), "file");
}

TEST_F(SameNames, AnEmptyDirectoryIsCopiedBesideAFile) {
  store_.server.put("bucket", "to", "file");
  make_dirs(here("empty"));
  EXPECT_EQ(sync(here("empty"), "s3://bucket/to", true).removed, 0);
  EXPECT_TRUE(is_directory("s3://bucket/to"));
  EXPECT_EQ(read("s3://bucket/to"), "file");
}

TEST_F(SameNames, TheDirectoryIsMovedAndThenTheFile) {
  EXPECT_EQ(rename(data_, "s3://bucket/new", {}).files, 2);
  EXPECT_THAT(store_.server.keys("bucket"), ElementsAre("data", "new/h", "new/sub/w"));
  EXPECT_FALSE(is_directory(data_));
  rename(data_, here("file"));
  EXPECT_EQ(read(here("file")), "file");
  EXPECT_THAT(store_.server.keys("bucket"), ElementsAre("new/h", "new/sub/w"));
}

// Without the right to list there are no directories.
TEST_F(SameNames, WhoMayNotListHasFiles) {
  store_.server.set_refuses_listings(true);
  EXPECT_FALSE(is_directory(data_));
  EXPECT_EQ(get_size(data_, true), 4);
  EXPECT_EQ(copy_parallel(data_, here("one")).files, 1);
  rename(data_, here("two"));
  EXPECT_EQ(read(here("two")), "file");
}

}  // namespace
}  // namespace mox::file
