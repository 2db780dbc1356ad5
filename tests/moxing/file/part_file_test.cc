// In directories that others may write to: what they have put in the place of an unfinished copy
// and its journal.
#include "moxing/file/internal/part_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "tests/support/temporary_directory.h"

namespace mox::file::internal {
namespace {

namespace fs = std::filesystem;

class PartFileAmongStrangers : public testing::Test {
 protected:
  PartFile part() const { return PartFile(directory_.file("b"), directory_.file("b.moxing.part")); }
  std::string journal() const { return directory_.file("b.moxing.part.journal"); }

  TemporaryDirectory directory_;
  const std::string other_ = directory_.write("elsewhere/other", "untouched");
};

TEST_F(PartFileAmongStrangers, AJournalThatIsALinkIsNotFollowed) {
  fs::create_symlink(other_, journal());
  EXPECT_THAT(message_of<IoError>([&] { part().begin("source", 10); }), testing::HasSubstr("is a link"));
  EXPECT_EQ(read_file(other_), "untouched");
  fs::remove(journal());
  fs::create_symlink(directory_.file("elsewhere/none"), journal());
  EXPECT_THROW(part().begin("source", 10), IoError);
  EXPECT_FALSE(fs::exists(directory_.file("elsewhere/none")));
}

TEST_F(PartFileAmongStrangers, AFileWithASecondNameIsNotWritten) {
  fs::create_hard_link(other_, directory_.file("b.moxing.part"));
  EXPECT_THAT(message_of<IoError>([&] { part(); }), testing::HasSubstr("has a second name"));
  fs::remove(directory_.file("b.moxing.part"));
  fs::create_hard_link(other_, journal());
  EXPECT_THAT(message_of<IoError>([&] { part().begin("source", 10); }),
              testing::HasSubstr("has a second name"));
  EXPECT_EQ(read_file(other_), "untouched");
}

TEST_F(PartFileAmongStrangers, WhatIsRecordedIsFoundAgain) {
  {
    PartFile file = part();
    file.begin("source", 4);
    file.write("abcd", 0);
    file.record(0, std::string(16, 'm'));
  }
  PartFile again = part();
  again.begin("source", 4);
  EXPECT_EQ(again.recorded(0), std::string(16, 'm'));
  again.record(1, std::string(16, 'n'));
  again.begin("source", 4);
  EXPECT_EQ(again.recorded(0), std::string(16, 'm')) << "lines are added at the end";
  EXPECT_EQ(again.recorded(1), std::string(16, 'n'));
}

TEST_F(PartFileAmongStrangers, IsItsOwnersAloneUntilItIsPublished) {
  const auto mode_of = [&](const char* name) {
    return fs::status(directory_.file(name)).permissions() & fs::perms::all;
  };
  // In the place of a file that others may not read it comes as one.
  for (const auto& [mask, expected] :
       {std::pair(mode_t{022}, 0644), std::pair(mode_t{0}, 0644), std::pair(mode_t{027}, 0640),
        std::pair(mode_t{077}, 0600), std::pair(mode_t{022}, 0600)}) {
    const mode_t before = ::umask(mask);
    PartFile file = part();
    file.begin("source", 4);
    EXPECT_EQ(mode_of("b.moxing.part"), fs::perms(0600));
    EXPECT_EQ(mode_of("b.moxing.part.journal"), fs::perms(0600));
    file.publish(false);
    EXPECT_EQ(mode_of("b"), fs::perms(expected));
    ::umask(before);
  }
}

// He could read what is copied, whatever its source permits.
TEST_F(PartFileAmongStrangers, AnotherUsersFileIsNotWritten) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to give a file to another user";
  for (const char* name : {"b.moxing.part", "b.moxing.part.journal"}) {
    const std::string path = directory_.write(name, "his");
    fs::permissions(path, fs::perms(0666));
    ASSERT_EQ(::lchown(path.c_str(), 65534, 65534), 0);
    EXPECT_THAT(message_of<IoError>([&] { part().begin("source", 10); }),
                testing::HasSubstr("'" + path + "' belongs to another user"));
    EXPECT_EQ(read_file(path), "his");
    fs::remove(path);
  }
}

}  // namespace
}  // namespace mox::file::internal
