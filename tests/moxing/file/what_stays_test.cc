// What copies, moves and synchronisations must leave alone, whatever it is called and wherever it lies.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "moxing/file/copy.h"
#include "moxing/file/file.h"
#include "moxing/file/internal/remove_others.h"
#include "moxing/file/internal/store.h"
#include "moxing/file/open_file.h"
#include "runtime/base/error.h"
#include "tests/moxing/file/store_fixture.h"
#include "tests/support/message_of.h"
#include "tests/support/without_privileges.h"

namespace mox::file {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class WhatStays : public testing::Test {
 protected:
  std::string here(const std::string& name) const { return directory_.file(name); }
  StoreFixture store_;
  TemporaryDirectory directory_;
};

// s3:// and obs:// are two schemes of one store.
TEST_F(WhatStays, AnObjectThatIsMovedToItself) {
  write("s3://bucket/a", "abc");
  EXPECT_THAT(message_of<InvalidArgument>([] { rename("s3://bucket/a", "obs://bucket/a"); }),
              HasSubstr("are the same file"));
  EXPECT_THROW(copy("obs://bucket/a", "s3://bucket/a"), InvalidArgument);
  EXPECT_EQ(read("s3://bucket/a"), "abc");
}

TEST_F(WhatStays, ALocalFileThatIsMovedToItself) {
  write(here("d/a"), "abc");
  std::filesystem::create_directory_symlink("d", here("link"));
  std::filesystem::create_symlink("a", here("d/b"));
  std::filesystem::create_hard_link(here("d/a"), here("d/c"));
  for (const char* other : {"d/a", "d/../d/a", "link/a", "d/b", "d/c"}) {
    EXPECT_THROW(rename(here("d/a"), here(other)), InvalidArgument) << other;
    EXPECT_THROW(rename(here(other), here("d/a")), InvalidArgument) << other;
    EXPECT_THROW(copy(here("d/a"), here(other), {.skip_same = false}), InvalidArgument) << other;
  }
  EXPECT_THAT(list_directory(here("d")), ElementsAre("a", "b", "c"));
  EXPECT_EQ(read(here("d/b")), "abc");
}

// Files on their way have names of their own.
TEST_F(WhatStays, NamesOfFilesOnTheirWay) {
  const std::vector<std::string> names = {
      "a", "a.part", "a.part.journal", "a.moxing.part", "a.moxing.part.journal", "a.moxing.part~"};
  const std::string large = random_bytes(17 << 20);
  for (const bool is_remote : {false, true}) {
    const std::string from = is_remote ? "s3://bucket/from" : here("from"),
                      to = here(is_remote ? "down" : "copied");
    for (const std::string& name : names) write(from + "/" + name, name + " as it was");
    copy_parallel(from, to);
    for (const std::string& content : {std::string("a new one"), large}) {
      write(from + "/a", content);
      EXPECT_EQ(copy_parallel(from, to, {.threads = 1}).same_files, 5);
      EXPECT_TRUE(read(to + "/a") == content);
      for (size_t i = 1; i < names.size(); ++i) EXPECT_EQ(read(to + "/" + names[i]), names[i] + " as it was");
      EXPECT_EQ(list_directory(to).size(), names.size());
    }
    write(from + "/a", "another");
    copy_parallel(from, to, {.file_list = names});
    for (size_t i = 1; i < names.size(); ++i) EXPECT_EQ(read(to + "/" + names[i]), names[i] + " as it was");
    write(here("b.part"), "a user's own");
    copy(from + "/a", here("b"));
    EXPECT_EQ(read(here("b.part")), "a user's own");
  }
}

TEST_F(WhatStays, NamesAsLongAsAFileSystemHasThem) {
  const std::string first = std::string(254, 'x') + "1", second = std::string(254, 'x') + "2";
  for (const std::string& name : {first, second}) write("s3://bucket/from/" + name, name);
  write("s3://bucket/from/" + std::string(240, 'y'), random_bytes(17 << 20));
  copy_parallel("s3://bucket/from", here("down"));
  copy_parallel(here("down"), here("copied"));
  EXPECT_EQ(read(here("copied/" + first)), first);
  EXPECT_EQ(read(here("copied/" + second)), second);
  EXPECT_EQ(list_directory(here("copied")).size(), 3u);
}

TEST_F(WhatStays, TheSourceOfASynchronisation) {
  for (const std::string& top : {here("top"), std::string("s3://bucket/top")}) {
    write(top + "/source/a", "abc");
    write(top + "/b", "b");
    EXPECT_THAT(message_of<FailedPrecondition>([&] { sync(top + "/source", top, true); }),
                HasSubstr("from which everything else would be removed"));
    EXPECT_EQ(read(top + "/source/a"), "abc");
    EXPECT_EQ(read(top + "/b"), "b");
    EXPECT_FALSE(exists(top + "/a"));
  }
  EXPECT_THROW(sync("s3://bucket/top/source", "obs://bucket/top", true), FailedPrecondition);
}

// Between the last look at the source and its removal.
TEST_F(WhatStays, WhatComesIntoASourceThatIsMoved) {
  for (const char* name : {"from/a", "from/s/b"}) write(std::string("s3://bucket/") + name, "abc");
  make_dirs("s3://bucket/from/empty");
  store_.server.set_page(1000);  // one a listing
  int listings = -1;
  store_.proxy.set_plan([&](const std::string& operation, int64_t) -> testing_store::Happening {
    const bool lists = operation.starts_with("ListObjects");
    if (operation == "CopyObject") listings = 0;
    if ((lists && listings >= 0 && ++listings == 2) || operation == "DeleteObjects")
      store_.server.put("bucket", "from/s/late", "late");
    return {};
  });
  EXPECT_THAT(message_of<IoError>([] { rename("s3://bucket/from", "s3://bucket/to"); }),
              AllOf(HasSubstr("'s3://bucket/from/s/late': it has come meanwhile")));
  store_.proxy.set_plan({});
  EXPECT_EQ(read("s3://bucket/from/s/late"), "late");
  EXPECT_THAT(store_.server.keys("bucket"), ElementsAre("from/s/late", "to/a", "to/empty/", "to/s/b"));
}

TEST_F(WhatStays, WhatComesIntoALocalSourceThatIsMoved) {
  write(here("elsewhere/precious"), "abc");
  for (const char* name : {"d/a", "d/s/b", "d/t/c"}) write(here(name), "abc");
  std::filesystem::create_directory_symlink("../elsewhere", here("d/link"));
  const internal::Url source = internal::parse_url(here("d"));
  const std::vector<DirectoryEntry> moved = internal::local_store().list(source, true);
  write(here("d/s/late"), "late");
  EXPECT_THAT(message_of<IoError>([&] { internal::local_store().remove_listed(source, moved); }),
              AllOf(HasSubstr("d/s': Directory not empty"), HasSubstr("everything else was")));
  EXPECT_THAT(list_directory(here("d"), {.recursive = true}), ElementsAre("s", "s/late"));
  EXPECT_EQ(read(here("elsewhere/precious")), "abc");
  remove(here("d/s/late"));
  internal::local_store().remove_listed(source, moved);  // what has gone by itself is well
  EXPECT_FALSE(exists(here("d")));
}

// Between the look at an empty directory and its removal.
TEST_F(WhatStays, WhatComesIntoADirectoryThatIsRemoved) {
  make_dirs("s3://bucket/empty");
  store_.server.set_page(1000);  // one a listing
  int listings = 0;
  store_.proxy.set_plan([&](const std::string& operation, int64_t) -> testing_store::Happening {
    if (listings == 2) store_.server.put("bucket", "empty/late", "late");
    listings += operation.starts_with("ListObjects");
    return {};
  });
  remove("s3://bucket/empty");
  EXPECT_THAT(store_.server.keys("bucket"), ElementsAre("empty/late"));

  write(here("empty/late"), "late");
  EXPECT_THAT(message_of<FailedPrecondition>(
                  [&] { internal::local_store().remove_directory(internal::parse_url(here("empty"))); }),
              HasSubstr("is a directory that is not empty"));
  EXPECT_EQ(read(here("empty/late")), "late");
}

// A synchronisation has listed the target, and removes the last name first.
TEST_F(WhatStays, WhatComesIntoATargetWhileOthersAreRemoved) {
  write(here("from/x"), "x");
  write(here("to/a/b/old"), "old");
  constexpr int kFiles = 3000;
  const auto name = [&](int i) { return here(fmt::format("to/z{:04}", i)); };
  for (int i = 0; i < kFiles; ++i) directory_.write(fmt::format("to/z{:04}", i), "");
  std::string text;
  {
    const std::jthread user([&] {
      while (std::filesystem::exists(name(kFiles - 1))) std::this_thread::yield();
      std::filesystem::create_directories(here("to/a/b"));
      directory_.write("to/a/b/late", "late");
    });
    try {
      sync(here("from"), here("to"), true);
    } catch (const IoError& error) {
      text = error.what();
    }
  }
  EXPECT_EQ(read(here("to/a/b/late")), "late");
  // It has come before the directory was to be removed, if this machine has not slept.
  if (!text.empty()) {
    EXPECT_THAT(text, AllOf(HasSubstr("1 could not be removed"), HasSubstr("to/a/b': something has come")));
  }
  EXPECT_THAT(list_directory(here("to"), {.recursive = true}), ElementsAre("a", "a/b", "a/b/late", "x"));
}

TEST_F(WhatStays, WhatALinkInTheTargetLeadsTo) {
  write(here("elsewhere/precious"), "abc");
  write(here("from/kept/a"), "a");
  write(here("target/kept/b"), "b");
  std::filesystem::create_directory_symlink("../elsewhere", here("target/link"));
  std::filesystem::create_symlink("../elsewhere/precious", here("target/file"));
  EXPECT_EQ(sync(here("from"), here("target"), true).removed, 3);
  EXPECT_EQ(read(here("elsewhere/precious")), "abc");
  EXPECT_THAT(list_directory(here("target"), {.recursive = true}), ElementsAre("kept", "kept/a"));
}

// The source has a directory of the link's name: what the target has behind the link is elsewhere
// all the same, and is neither removed nor written.
TEST_F(WhatStays, WhatAWantedLinkInTheTargetLeadsTo) {
  write(here("elsewhere/precious"), "abc");
  write(here("from/kept/a"), "a");
  std::filesystem::create_directory(here("target"));
  std::filesystem::create_directory_symlink("../elsewhere", here("target/kept"));
  EXPECT_THAT(message_of<IoError>([&] { sync(here("from"), here("target"), true); }),
              HasSubstr("target/kept' is a link"));
  EXPECT_THAT(list_directory(here("elsewhere")), ElementsAre("precious"));

  // The link leads to the source itself.
  write(here("source/link/x"), "x");
  write(here("source/a"), "a");
  std::filesystem::create_directory(here("other"));
  std::filesystem::create_directory_symlink("../source", here("other/link"));
  EXPECT_THROW(sync(here("source"), here("other"), true), IoError);
  EXPECT_EQ(
      internal::remove_others(internal::parse_url(here("source")), internal::parse_url(here("other")), {}),
      0);
  EXPECT_EQ(read(here("source/link/x")), "x");
  EXPECT_EQ(read(here("source/a")), "a");
}

TEST_F(WhatStays, ADirectoryThatWouldLieInItself) {
  write(here("top/a"), "a");
  EXPECT_THROW(rename(here("top"), here("top/x/y")), FailedPrecondition);
  EXPECT_FALSE(exists(here("top/x")));
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(here("top"));
  EXPECT_THROW(copy_parallel(".", "new"), FailedPrecondition);  // nothing of it is there yet
  std::filesystem::current_path(before);
  EXPECT_THAT(list_directory(here("top"), {.recursive = true}), ElementsAre("a"));
}

// In a store a file and a directory may have the same name.
TEST_F(WhatStays, OfAFileAndADirectoryOfOneNameTheOneThatIsWanted) {
  write(here("from/d/y"), "y");
  write(here("from/f"), "f");
  for (const char* key : {"d", "d/x", "f/", "f/x", "both", "both/", "both/x", "gone", "gone/"})
    store_.server.put("bucket", std::string("to/") + key, std::string(key).ends_with('/') ? "" : "abc");
  sync(here("from"), "s3://bucket/to", true);
  EXPECT_THAT(store_.server.keys("bucket"), ElementsAre("to/d/y", "to/f"));
}

// The object that stands for a directory may have content, which is nobody's else.
TEST_F(WhatStays, TheContentOfADirectorysOwnObject) {
  store_.server.put("bucket", "d/", "abc");
  store_.server.put("bucket", "d/e/", "de");
  EXPECT_EQ(get_size("s3://bucket/d", true), 5);
  EXPECT_THAT(message_of<IoError>([&] { copy_parallel("s3://bucket/d", here("down")); }),
              AllOf(HasSubstr("0 of 2 files"), HasSubstr("s3://bucket/d/: ")));
  EXPECT_THROW(rename("s3://bucket/d", here("moved")), IoError);
  EXPECT_EQ(store_.server.keys("bucket").size(), 2u);
  rename("s3://bucket/d", "s3://bucket/new");
  EXPECT_THAT(store_.server.keys("bucket"), ElementsAre("new/", "new/e/"));
  EXPECT_EQ(*store_.server.content("bucket", "new/"), "abc");
}

TEST_F(WhatStays, PipesAndDevices) {
  ASSERT_EQ(::mkfifo(here("pipe").c_str(), 0600), 0);
  write("s3://bucket/a", "abc");
  write(here("a"), "abc");
  const auto is_pipe = [&] {
    struct stat status {};
    return ::stat(here("pipe").c_str(), &status) == 0 && S_ISFIFO(status.st_mode);
  };
  for (const auto& call : std::vector<std::function<void()>>{
           [&] { copy("s3://bucket/a", here("pipe")); }, [&] { copy(here("a"), here("pipe")); },
           [&] { rename("s3://bucket/a", here("pipe")); }, [&] { rename(here("a"), here("pipe")); },
           [&] { write(here("pipe"), "abc"); }, [&] { append(here("pipe"), "abc"); },
           [&] { File(here("pipe"), "w"); }, [&] { File(here("pipe"), "a"); },
           [&] { File(here("pipe"), "r+"); }}) {
    EXPECT_THAT(message_of<IoError>(call), HasSubstr("is a pipe, a socket or a device"));
    EXPECT_TRUE(is_pipe());
  }
  EXPECT_THAT(list_directory(directory_.path()), ElementsAre("a", "pipe"));
}

// Whoever may read a file may lock it, and keep it locked.
TEST_F(WhatStays, AFileThatOthersHoldLockedIsAppendedTo) {
  write(here("log"), "one\n");
  const int others = ::open(here("log").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::flock(others, LOCK_EX), 0);
  append(here("log"), "two\n");
  EXPECT_EQ(read(here("log")), "one\ntwo\n");
  ::close(others);
}

TEST_F(WhatStays, WhatMayNotBeLookedAtIsNoEmptyDirectory) {
  write(here("from/closed/a"), "abc");
  ::chmod(here("from/closed").c_str(), 0444);  // names may be read, and nothing else
  // From within, for the directories above may be closed to others.
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(here("from"));
  const std::string text =
      message_without_privileges<IoError>([] { list_directory(".", {.recursive = true}); });
  std::filesystem::current_path(before);
  ::chmod(here("from/closed").c_str(), 0755);
  EXPECT_THAT(text, AllOf(HasSubstr("closed/a"), HasSubstr("Permission denied")));
}

}  // namespace
}  // namespace mox::file
