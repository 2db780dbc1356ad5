// Links that somebody has put among the directories below the one that a copy, a move or a removal was given,
// or puts there meanwhile: nothing is written, removed or opened to others where they lead.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "moxing/file/copy.h"
#include "moxing/file/file.h"
#include "moxing/file/internal/copy_task.h"
#include "moxing/file/internal/store.h"
#include "moxing/file/open_file.h"
#include "runtime/base/error.h"
#include "tests/moxing/file/store_fixture.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_directory.h"

namespace mox::file {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

namespace fs = std::filesystem;

class LinksOnTheWay : public testing::Test {
 protected:
  LinksOnTheWay() { directory_.write("elsewhere/x", "precious"); }
  std::string here(const std::string& name) const { return directory_.file(name); }
  // `name` leads elsewhere, and what was there has another name.
  void put_link(const std::string& name) const {
    if (fs::exists(here(name))) fs::rename(here(name), here(name + ".moved"));
    fs::create_directory_symlink(here("elsewhere"), here(name));
  }
  void expect_elsewhere_untouched() const {
    EXPECT_EQ(read(here("elsewhere/x")), "precious");
    EXPECT_THAT(list_directory(here("elsewhere"), {.recursive = true}), ElementsAre("x"));
  }

  TemporaryDirectory directory_;
};

class LinksBelowATarget : public LinksOnTheWay, public testing::WithParamInterface<bool> {
 protected:
  std::string source() const { return GetParam() ? "s3://bucket/from" : here("from"); }
  StoreFixture store_;
};

INSTANTIATE_TEST_SUITE_P(FromDiskAndStore, LinksBelowATarget, testing::Bool());

TEST_P(LinksBelowATarget, AreNamedAndNotWrittenThrough) {
  for (const char* name : {"a", "run/x", "run/deep/y", "z"}) write(source() + "/" + name, name);
  write(source() + "/run/long", random_bytes(17 << 20));
  const CopyOptions listed{.file_list = {"a", "run/x", "run/deep/y", "run/long", "z"}};
  for (const CopyOptions& options :
       {CopyOptions{}, CopyOptions{.skip_same = false, .durable = true}, listed}) {
    fs::remove_all(here("to"));
    fs::create_directory(here("to"));
    put_link("to/run");
    const std::string text = message_of<IoError>([&] { copy_parallel(source(), here("to"), options); });
    EXPECT_THAT(text, AllOf(HasSubstr("2 of 5 files"),
                            HasSubstr("run/long: '" + here("to/run") + "' is a link, which is not followed"),
                            HasSubstr("run/deep/y: '" + here("to/run") + "' is a link")));
    EXPECT_EQ(read(here("to/a")) + read(here("to/z")), "az");
    expect_elsewhere_untouched();
  }
}

TEST_P(LinksBelowATarget, AreFollowedWhereTheyAreTheTarget) {
  write(source() + "/run/x", "abc");
  fs::create_directory(here("real"));
  fs::create_directory_symlink("real", here("to"));
  copy_parallel(source(), here("to"));
  EXPECT_EQ(read(here("real/run/x")), "abc");
}

TEST_P(LinksBelowATarget, AreNotKeptAsOfTheSameContent) {
  write(source() + "/run/x", "precious");
  fs::create_directory(here("to"));
  put_link("to/run");
  EXPECT_THAT(message_of<IoError>([&] { sync(source(), here("to"), true); }), HasSubstr("is a link"));
  expect_elsewhere_untouched();
}

// What the system says of a file that is on its way names it as the user knows it.
TEST_P(LinksBelowATarget, AFileInTheWayIsNamedByItsPath) {
  write(source() + "/run/x/y", "abc");
  write(source() + "/run/z", "abc");
  write(here("to/run/x"), "a file");
  fs::create_directories(here("to/run/z"));
  EXPECT_THAT(
      message_of<IoError>([&] { copy_parallel(source(), here("to")); }),
      AllOf(HasSubstr("run/x/y: cannot open the directory '" + here("to/run/x") + "': Not a directory"),
            HasSubstr("run/z: '" + here("to/run/z") + "' is a directory"),
            testing::Not(HasSubstr("/proc/"))));
}

TEST_F(LinksOnTheWay, AreNotGivenThePermissionsOfWhatIsMoved) {
  write(here("from/run/deep/x"), "abc");
  ::chmod(here("from/run").c_str(), 0777);
  ::chmod(here("elsewhere").c_str(), 0700);
  const internal::Url from = internal::parse_url(here("from")), to = internal::parse_url(here("to"));
  const std::vector<DirectoryEntry> moved = internal::local_store().list(from, true);
  copy_parallel(here("from"), here("to"));
  put_link("to/run");
  EXPECT_THAT(message_of<IoError>([&] { internal::give_permissions(from, to, moved); }),
              HasSubstr("'" + here("to/run") + "' is a link"));
  EXPECT_EQ(fs::status(here("elsewhere")).permissions(), fs::perms::owner_all);
}

class LinksToFiles : public LinksOnTheWay {
 protected:
  // A link of another user's.
  void put_others_link(const std::string& target, const std::string& name) const {
    fs::create_symlink(target, here(name));
    ASSERT_EQ(::lchown(here(name).c_str(), 65534, 65534), 0);
  }
  const std::vector<std::function<void(const std::string&)>> writers_ = {
      [](const std::string& path) { append(path, "more"); },
      [](const std::string& path) { File(path, "w").write("more"); },
      [](const std::string& path) { File(path, "a").write("more"); },
      [](const std::string& path) { File(path, "r+").write("more"); }};
};

TEST_F(LinksToFiles, OfAnotherUserAreNotWrittenThrough) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to give a link to another user";
  put_others_link("elsewhere/x", "events.log");
  put_others_link("elsewhere/new", "new.log");
  fs::create_symlink("events.log", here("own.log"));
  for (const char* name : {"events.log", "new.log", "own.log"})
    for (const auto& write_to : writers_)
      EXPECT_THAT(message_of<IoError>([&] { write_to(here(name)); }),
                  AllOf(HasSubstr("is a link of another user's (uid 65534), which is not followed"),
                        HasSubstr("Remove it")))
          << name;
  expect_elsewhere_untouched();
}

// Logs are linked to another disk.
TEST_F(LinksToFiles, OfThisUserAreFollowed) {
  fs::create_symlink(here("elsewhere/x"), here("elsewhere/absolute"));
  fs::create_symlink("elsewhere/absolute", here("events.log"));
  append(here("events.log"), ", and more");
  EXPECT_EQ(read(here("elsewhere/x")), "precious, and more");
  File(here("events.log"), "r+").write("PREC");
  EXPECT_EQ(read(here("elsewhere/x")), "PRECious, and more");
  File(here("events.log"), "w").write("anew");
  EXPECT_EQ(read(here("elsewhere/x")), "anew");
  fs::create_symlink("elsewhere/new", here("new.log"));  // which is not there yet
  File(here("new.log"), "a").write("first");
  EXPECT_EQ(read(here("elsewhere/new")), "first");
  fs::create_symlink("loop", here("loop"));
  EXPECT_THROW(append(here("loop"), "more"), IoError);
  File("/dev/null", "w").write("nothing");

  const int open = ::open(here("elsewhere/x").c_str(), O_RDWR | O_CLOEXEC);
  fs::remove(here("elsewhere/x"));
  File(fmt::format("/proc/self/fd/{}", open), "a").write(" of one without a name");
  EXPECT_EQ(fs::file_size(fmt::format("/proc/self/fd/{}", open)), 26u);
  ::close(open);
}

// A file server lends files, and gets them back when somebody else opens them. A file system that lends none
// has this one at once.
TEST_F(LinksToFiles, AFileThatIsLentIsWaitedFor) {
  append(here("log"), "one\n");
  const int lent = ::open(here("log").c_str(), O_RDONLY | O_CLOEXEC);
  std::signal(SIGIO, SIG_IGN);  // by which the system asks for it
  ::fcntl(lent, F_SETLEASE, F_RDLCK);
  {
    const std::jthread gives_back([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      ::fcntl(lent, F_SETLEASE, F_UNLCK);
    });
    append(here("log"), "two\n");
  }
  EXPECT_EQ(read(here("log")), "one\ntwo\n");
  ::close(lent);
}

// Each removal takes the many files first, and somebody acts when the first of them is gone.
class LinksDuringARemoval : public LinksOnTheWay {
 protected:
  static constexpr int kFiles = 3000;
  // Puts the link `name` there when the file `first` is gone.
  template <typename Removal>
  std::string message_with_link(const std::string& name, const std::string& first, const Removal& removal) {
    const std::jthread stranger([&] {
      while (fs::exists(here(first))) std::this_thread::yield();
      put_link(name);
    });
    try {
      removal();
      return "";
    } catch (const IoError& error) {
      return error.what();
    }
  }
  // It has come before the directory was to be removed, if this machine has not slept.
  static void expect_named(const std::string& text, const std::string& name) {
    if (!text.empty()) {
      EXPECT_THAT(text, HasSubstr(name + "': a link, or a file, has come into the place of a directory"));
    }
  }
};

TEST_F(LinksDuringARemoval, OfATree) {
  for (int i = 0; i < kFiles; ++i) directory_.write(fmt::format("d/a{:04}", i), "");
  directory_.write("d/z/x", "ours");
  const std::string text = message_with_link("d/z", "d/a0000", [&] { remove(here("d"), true); });
  expect_elsewhere_untouched();
  expect_named(text, "d/z");
}

TEST_F(LinksDuringARemoval, OfWhatWasListed) {
  directory_.write("d/a/x", "ours");
  for (int i = 0; i < kFiles; ++i) directory_.write(fmt::format("d/z{:04}", i), "");
  const internal::Url source = internal::parse_url(here("d"));
  const std::vector<DirectoryEntry> listed = internal::local_store().list(source, true);
  const std::string text = message_with_link("d/a", fmt::format("d/z{:04}", kFiles - 1),
                                             [&] { internal::local_store().remove_listed(source, listed); });
  expect_elsewhere_untouched();
  expect_named(text, "d/a/x");
}

TEST_F(LinksDuringARemoval, OfWhatASourceDoesNotHave) {
  directory_.write("from/b", "b");
  directory_.write("to/a/x", "ours");
  for (int i = 0; i < kFiles; ++i) directory_.write(fmt::format("to/z{:04}", i), "");
  const std::string text = message_with_link("to/a", fmt::format("to/z{:04}", kFiles - 1),
                                             [&] { sync(here("from"), here("to"), true); });
  expect_elsewhere_untouched();
  expect_named(text, "to/a/x");
}

}  // namespace
}  // namespace mox::file
