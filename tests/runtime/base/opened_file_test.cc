// What somebody else may have put in a file's place.
#include "runtime/base/opened_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <string>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/input_file.h"
#include "runtime/base/local_name.h"
#include "runtime/base/new_file.h"
#include "tests/support/temporary_directory.h"

namespace mox {
namespace {

namespace fs = std::filesystem;

class OpenedFileTest : public ::testing::Test {
 protected:
  std::string in(const char* name) const { return directory_.path() + "/" + name; }
  TemporaryDirectory directory_;
};

TEST_F(OpenedFileTest, AFifoIsRefusedAndNotWaitedFor) {
  ASSERT_EQ(::mkfifo(in("fifo").c_str(), 0644), 0);
  EXPECT_NE(message_of<IoError>([&] { read_file(in("fifo")); }).find("is a FIFO, not a regular file"),
            std::string::npos);
  EXPECT_NE(message_of<IoError>([&] { InputFile{in("fifo")}; }).find("is a FIFO"), std::string::npos);
  EXPECT_NE(message_of<IoError>([&] { open_kept_file(in("fifo")); }).find("is a FIFO"), std::string::npos);
}

TEST_F(OpenedFileTest, ASocketAndADeviceAndADirectoryAreRefused) {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  in("socket").copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_THROW(open_regular_file(in("socket")), IoError);
  ::close(socket);
  EXPECT_NE(message_of<IoError>([] { read_file("/dev/zero"); }).find("is a device"), std::string::npos);
  EXPECT_NE(message_of<IoError>([&] { read_file(directory_.path()); }).find("is a directory"),
            std::string::npos);
}

TEST_F(OpenedFileTest, DataMayBeLinksButNothingIsWrittenThroughOne) {
  write_file_atomically(in("elsewhere"), std::string_view("kept"));
  fs::create_symlink(in("elsewhere"), in("link"));
  EXPECT_EQ(read_file(in("link")), "kept");
  EXPECT_NE(message_of<IoError>([&] { open_kept_file(in("link")); }).find("is a link"), std::string::npos);
  fs::create_symlink(in("nowhere"), in("dangling"));
  EXPECT_THROW(open_kept_file(in("dangling")), IoError);
  EXPECT_FALSE(fs::exists(in("nowhere")));
  fs::create_hard_link(in("elsewhere"), in("second_name"));
  EXPECT_NE(message_of<IoError>([&] { open_kept_file(in("second_name")); }).find("a second name"),
            std::string::npos);
  EXPECT_EQ(read_file(in("elsewhere")), "kept");
}

// Who owns a file may read it, and change it, whatever its permissions are.
// It ends a run with another status than a full disk, so that nobody begins it again.
TEST_F(OpenedFileTest, WhatAnotherStartWouldMeetAgainIsAnUnusablePlace) {
  write_file_atomically(in("file"), "");
  fs::create_directory(in("directory"));
  fs::create_directory_symlink(in("directory"), in("link"));
  fs::create_hard_link(in("file"), in("second_name"));
  EXPECT_THROW(open_kept_file(in("link")), UnusablePlace);
  EXPECT_THROW(open_kept_file(in("second_name")), UnusablePlace);
  for (const char* name : {"link", "file", "nowhere"})
    EXPECT_THROW(HeldDirectory{in(name)}, UnusablePlace) << name;

  const HeldDirectory held(in("directory"));
  const std::string path = held.file("x");
  EXPECT_THROW(held.throw_named(UnusablePlace(path)), UnusablePlace);
  try {
    held.throw_named(IoError(path + " is full"));
  } catch (const IoError& error) {
    EXPECT_EQ(dynamic_cast<const UnusablePlace*>(&error), nullptr);
    EXPECT_EQ(error.what(), in("directory") + "/x is full");
  }
}

TEST_F(OpenedFileTest, ADirectoryInOneThatIsHeldIsNoLink) {
  fs::create_directories(in("directory/below"));
  fs::create_directory_symlink("below", in("directory/link"));
  const HeldDirectory held(in("directory")), below(held, "below");
  EXPECT_EQ(below.name(), in("directory/below"));
  fs::rename(in("directory"), in("renamed"));
  write_file_atomically(below.file("file"), "written");
  EXPECT_EQ(read_file(in("renamed/below/file")), "written");
  EXPECT_NE(message_of<UnusablePlace>([&] {
              HeldDirectory{held, "link"};
            }).find("'" + in("directory/link") + "' is a link, which is not followed"),
            std::string::npos);
  EXPECT_NE(message_of<UnusablePlace>([&] {
              HeldDirectory{below, "file"};
            }).find("cannot open the directory '" + in("directory/below/file") + "'"),
            std::string::npos);
}

TEST_F(OpenedFileTest, AnotherUsersFileIsNotGoneOnWith) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to give a file to another user";
  write_file_atomically(in("log"), std::string_view("kept"));
  ASSERT_EQ(::chmod(in("log").c_str(), 0666), 0);
  ASSERT_EQ(::lchown(in("log").c_str(), 65534, 65534), 0);
  const std::string said = message_of<IoError>([&] { open_kept_file(in("log")); });
  EXPECT_NE(said.find("'" + in("log") + "' belongs to another user (uid 65534)"), std::string::npos) << said;
  EXPECT_NE(said.find("remove it"), std::string::npos) << said;
  // The same of another one than root, to whom it is open.
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0777), 0);
  ASSERT_EQ(::lchown(in("log").c_str(), 65533, 65533), 0);
  ASSERT_EQ(::seteuid(65534), 0);
  EXPECT_THROW(open_kept_file(in("log")), IoError);
  EXPECT_NO_THROW(open_kept_file(in("own")));
  EXPECT_NO_THROW(open_kept_file(in("own")));
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_TRUE(is_this_users(::geteuid(), in("no_directory")));
  EXPECT_FALSE(is_this_users(65534, directory_.path()));
  EXPECT_EQ(read_file(in("log")), "kept");
}

// Somebody gives another's file the kept one's name, and takes it away again: the open file has one name
// then, which is the other's.
TEST_F(OpenedFileTest, AFileThatHadTheNameForAMomentIsNotWrittenTo) {
  write_file_atomically(in("secret"), "untouched");
  const pid_t stranger = ::fork();
  ASSERT_GE(stranger, 0);
  if (stranger == 0)
    for (;;) {
      ::unlink(in("log").c_str());
      if (::link(in("secret").c_str(), in("log").c_str()) != 0 && errno != EEXIST) ::_exit(1);
    }
  for (int i = 0; i < 4000; ++i) {
    try {
      append_to(open_kept_file(in("log")), in("log"), "written");
    } catch (const IoError&) {
    }
  }
  ::kill(stranger, SIGKILL);
  ::waitpid(stranger, nullptr, 0);
  EXPECT_EQ(read_file(in("secret")), "untouched");
}

TEST_F(OpenedFileTest, AKeptFileIsMadeOrGoneOnWith) {
  const FileDescriptor made = open_kept_file(in("log"), 0600);
  append_to(made, in("log"), "a\n");
  append_to(open_kept_file(in("log")), in("log"), "b\n");
  EXPECT_EQ(read_file(in("log")), "a\nb\n");
  EXPECT_EQ(fs::status(in("log")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(OpenedFileTest, ANewFileAppearsWholeInPlaceOfALinkWhoseFileStays) {
  write_file_atomically(in("elsewhere"), std::string_view("kept"));
  fs::create_symlink(in("elsewhere"), in("out"));
  {
    NewFile file(in("out"));
    file.write(std::as_bytes(std::span("ab", 2)));
    file.write(std::as_bytes(std::span("cd", 2)));
    file.write_at(1, std::as_bytes(std::span("B", 1)));
    EXPECT_EQ(read_file(in("out")), "kept");
    file.publish();
  }
  EXPECT_EQ(read_file(in("out")), "aBcd");
  EXPECT_FALSE(fs::is_symlink(in("out")));
  EXPECT_EQ(read_file(in("elsewhere")), "kept");
}

TEST_F(OpenedFileTest, ANewFileThatIsGivenUpLeavesNothing) {
  { NewFile file(in("out")); }
  EXPECT_TRUE(fs::is_empty(directory_.path()));
  EXPECT_THROW(NewFile(in("no_directory/out")), IoError);
}

// A file that is written anew is another one; what its owner has kept from others stays so.
TEST_F(OpenedFileTest, WhatOthersMayNotReadStaysSoWhenItIsWrittenAnew) {
  const mode_t mask = ::umask(022);
  for (const auto& [before, after] : {std::pair(0, 0644), std::pair(0600, 0600), std::pair(0400, 0600),
                                      std::pair(0640, 0640), std::pair(0666, 0644)}) {
    for (const bool whole : {true, false}) {
      fs::remove(in("key"));
      if (before != 0) {
        write_file_atomically(in("key"), "old");
        ASSERT_EQ(::chmod(in("key").c_str(), static_cast<mode_t>(before)), 0);
      }
      if (whole)
        write_file_atomically(in("key"), "new");
      else
        NewFile(in("key")).publish();
      EXPECT_EQ(fs::status(in("key")).permissions(), fs::perms(after)) << whole;
    }
  }
  ::umask(mask);
}

// Who may make a link in a directory would have what it leads to written where he may read it.
TEST_F(OpenedFileTest, WhatIsGoneOnWithIsNoLinkAndHasOneName) {
  write_file_atomically(in("elsewhere"), "kept");
  EXPECT_EQ(read_open_file(open_file_to_go_on_with(in("elsewhere")), in("elsewhere")), "kept");
  EXPECT_THROW(open_file_to_go_on_with(in("nowhere")), NotFound);
  fs::create_symlink(in("elsewhere"), in("link"));
  EXPECT_NE(message_of<UnusablePlace>([&] { open_file_to_go_on_with(in("link")); }).find("is a link"),
            std::string::npos);
  fs::create_hard_link(in("elsewhere"), in("second"));
  EXPECT_NE(message_of<UnusablePlace>([&] { open_file_to_go_on_with(in("second")); }).find("a second name"),
            std::string::npos);
}

}  // namespace
}  // namespace mox
