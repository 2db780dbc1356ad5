// What another machine writes to the store of a run while this one trains it.
#include <gmock/gmock.h>

#include <chrono>
#include <functional>
#include <thread>

#include "moxing/file/file.h"
#include "moxing/file/jobs/internal/stored_files.h"
#include "moxing/file/jobs/local_places.h"
#include "moxing/file/jobs/run_upload.h"
#include "tests/moxing/file/store_fixture.h"

namespace mox::file {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kSharedRun = "s3://bucket/run";
constexpr const char* kOther = "other content of";

class OthersFiles : public testing::Test {
 protected:
  OthersFiles() : place_(local_run(kSharedRun, places_.path())) {}
  static bool comes(const std::function<bool()>& condition) {
    for (int i = 0; i < 6000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  std::string stored(const std::string& name) const {
    const auto content = store_.server.content("bucket", "run/" + name);
    return content ? *content : "";
  }
  // Whether the store has `content`, and this machine has noted that it sent it.
  bool sent(const std::string& name, const std::string& content) const {
    if (stored(name) != content) return false;
    const internal::StoredFiles noted = internal::read_stored_files(place_);
    const auto found = noted.find(name);
    return found != noted.end() && found->second.etag == stat(std::string(kSharedRun) + "/" + name).etag;
  }
  void put(const std::string& name, const std::string& content) {
    store_.server.put("bucket", "run/" + name, content);
  }
  std::string here(const std::string& name) const { return place_ + "/" + name; }
  // What is in the one directory of what was put aside.
  std::vector<std::string> asides() const {
    const std::vector<std::string> found = glob(place_ + ".aside-*");
    EXPECT_LE(found.size(), 1u);
    return found.empty() ? found : list_directory(found[0], {.recursive = true, .skip_dir = true});
  }
  std::string aside(const std::string& name) const {
    const std::vector<std::string> found = glob(place_ + ".aside-*");
    return found.empty() ? "nothing was put aside" : read(found[0] + "/" + name);
  }
  // What an upload says during which `happens`.
  std::string said_during(const std::function<void()>& happens) {
    testing::internal::CaptureStderr();
    {
      RunUpload upload(place_, kSharedRun, often_);
      happens();
      upload.finish();
    }
    return testing::internal::GetCapturedStderr();
  }

  StoreFixture store_;
  TemporaryDirectory places_;
  const std::string place_;
  const RunUploadOptions often_{
      .look_every_s = 0.01, .files_every_s = 0.01, .retry_every_s = 0.02, .finish_within_s = 30};
};

TEST_F(OthersFiles, ArePutAsideAndSaidOnce) {
  const std::string said = said_during([&] {
    write(here("logs/notes.txt"), "line 1\n");
    write(here("status.txt"), "1");
    EXPECT_TRUE(comes([&] { return sent("logs/notes.txt", "line 1\n") && sent("status.txt", "1"); }));
    for (const char* content : {"of another machine", "of another machine, later"}) {
      put("logs/notes.txt", content);
      append(here("logs/notes.txt"), "line\n");
      write(here("status.txt"), "2");
      EXPECT_TRUE(comes([&] { return sent("logs/notes.txt", read(here("logs/notes.txt"))); }));
    }
  });
  EXPECT_EQ(stored("logs/notes.txt"), "line 1\nline\nline\n");
  EXPECT_EQ(stored("status.txt"), "2");
  EXPECT_THAT(asides(), ElementsAre("logs/notes.txt"));
  EXPECT_EQ(aside("logs/notes.txt"), "of another machine, later");
  EXPECT_THAT(said, AllOf(HasSubstr(kOther), HasSubstr("logs/notes.txt"), HasSubstr(place_ + ".aside-"),
                          Not(HasSubstr("status.txt"))));
  EXPECT_EQ(said.find(kOther), said.rfind(kOther)) << said;
}

// A place that goes on from its own newer checkpoint fetches no files, and what it knows is of before.
TEST_F(OthersFiles, OfBeforeTheStartAreKept) {
  write(here("notes.txt"), "line 1\n");
  said_during([] {});
  put("notes.txt", "of another machine");
  append(here("notes.txt"), "line 2\n");
  EXPECT_THAT(said_during([] {}), HasSubstr(kOther));
  EXPECT_EQ(aside("notes.txt"), "of another machine");
  EXPECT_EQ(stored("notes.txt"), "line 1\nline 2\n");
}

TEST_F(OthersFiles, ThatTheRunDeletesAreKept) {
  const std::string said = said_during([&] {
    write(here("a.txt"), "1");
    write(here("b.txt"), "1");
    EXPECT_TRUE(comes([&] { return sent("a.txt", "1") && sent("b.txt", "1"); }));
    put("a.txt", "of another machine");
    remove(here("a.txt"));
  });
  EXPECT_EQ(stored("a.txt"), "");
  EXPECT_THAT(said, AllOf(HasSubstr(kOther), HasSubstr("a.txt")));
  EXPECT_EQ(aside("a.txt"), "of another machine");
}

// As a process leaves it that is killed between an upload and its note.
TEST_F(OthersFiles, AreNoneWhereTheStoreHasTheBeginning) {
  put("notes.txt", "line 1\n");
  write(here("notes.txt"), "line 1\nline 2\n");
  EXPECT_THAT(said_during([] {}), Not(HasSubstr(kOther)));
  EXPECT_EQ(stored("notes.txt"), "line 1\nline 2\n");
  EXPECT_THAT(asides(), IsEmpty());
}

TEST_F(OthersFiles, AreNoneWhereAListingHasOtherEtags) {
  put("notes.txt", "of the store");
  store_.server.set_lists_other_etags(true);
  local_run(kSharedRun, places_.path());
  write(here("notes.txt"), "of here");
  EXPECT_THAT(said_during([] {}), Not(HasSubstr(kOther)));
  EXPECT_EQ(stored("notes.txt"), "of here");
  EXPECT_THAT(asides(), IsEmpty());
}

}  // namespace
}  // namespace mox::file
