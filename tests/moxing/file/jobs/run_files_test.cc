// A run that starts again where both this machine and the store have its files.
#include <gmock/gmock.h>

#include <filesystem>

#include "moxing/file/file.h"
#include "moxing/file/jobs/local_places.h"
#include "moxing/file/jobs/run_upload.h"
#include "runtime/base/error.h"
#include "tests/moxing/file/jobs/manifests.h"
#include "tests/moxing/file/store_fixture.h"
#include "tests/support/message_of.h"

namespace mox::file {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kRun = "s3://bucket/run";

class RunFiles : public testing::Test {
 protected:
  RunFiles() : place_(local_run(kRun, places_.path())) {}
  void upload() { RunUpload(place_, kRun, {.finish_within_s = 30}).finish(); }
  // What it says.
  std::string start_again() {
    testing::internal::CaptureStderr();
    local_run(kRun, places_.path());
    return testing::internal::GetCapturedStderr();
  }
  std::string here(const std::string& name) const { return read(place_ + "/" + name); }
  std::string stored(const std::string& name) const {
    const auto content = store_.server.content("bucket", "run/" + name);
    return content ? *content : "";
  }
  void put(const std::string& name, const std::string& content) {
    store_.server.put("bucket", "run/" + name, content);
  }
  std::vector<std::string> asides() const { return glob(place_ + ".aside-*"); }

  StoreFixture store_;
  TemporaryDirectory places_;
  const std::string place_;
};

// A store may list any name.
TEST_F(RunFiles, NamesThatLeadOutOfTheRunAreRefused) {
  int number = 0;
  for (const std::string name : {"../other/checkpoint-9/state.json", "a/../../other/b", "best/./x",
                                 "../../checkpoint-3/variables.safetensors"}) {
    const std::string run = "odd-" + std::to_string(number++);
    store_.server.put("bucket", run + "/" + name, "{}");
    EXPECT_THAT(message_of<DataError>([&] { local_run("s3://bucket/" + run, places_.path()); }),
                AllOf(HasSubstr("s3://bucket/" + run + "/" + name), HasSubstr("outside of the run")));
  }
  EXPECT_THAT(glob(places_.path() + "/**/checkpoint-*"), IsEmpty());
}

// As kill -9, or a store that was lost until the end, leaves it.
TEST_F(RunFiles, WhatTheStoreDoesNotHaveYetStays) {
  write(place_ + "/notes.txt", "line 1\n");
  write(place_ + "/logs/status.txt", "step 100");
  write(place_ + "/a name\twith spaces", "1");
  upload();
  append(place_ + "/notes.txt", "line 2\n");
  write(place_ + "/logs/status.txt", "step 7");
  write(place_ + "/a name\twith spaces", "2");
  EXPECT_THAT(start_again(), Not(HasSubstr("aside")));
  EXPECT_EQ(here("notes.txt"), "line 1\nline 2\n");
  EXPECT_EQ(here("logs/status.txt"), "step 7");
  EXPECT_EQ(here("a name\twith spaces"), "2");
  upload();
  EXPECT_EQ(stored("notes.txt"), "line 1\nline 2\n");
  EXPECT_EQ(stored("logs/status.txt"), "step 7");
}

// The same of what came from the store.
TEST_F(RunFiles, WhatWasFetchedAndChangedHereStays) {
  put("notes.txt", "of the store");
  start_again();
  write(place_ + "/notes.txt", "of here");
  EXPECT_THAT(start_again(), Not(HasSubstr("aside")));
  EXPECT_EQ(here("notes.txt"), "of here");
}

TEST_F(RunFiles, WhatAnotherMachineHasWrittenIsFetched) {
  write(place_ + "/notes.txt", "line 1\n");
  upload();
  put("notes.txt", "of another machine");
  put("more.txt", "too");
  start_again();
  EXPECT_EQ(here("notes.txt"), "of another machine");
  EXPECT_EQ(here("more.txt"), "too");
  EXPECT_THAT(asides(), IsEmpty());  // it is what the store had before
}

TEST_F(RunFiles, WhatBothHaveChangedIsPutAsideAndSaid) {
  write(place_ + "/logs/notes.txt", "line 1\n");
  write(place_ + "/same.txt", "1");
  upload();
  append(place_ + "/logs/notes.txt", "line 2\n");
  put("logs/notes.txt", "of another machine");
  const std::string said = start_again();
  EXPECT_EQ(here("logs/notes.txt"), "of another machine");
  ASSERT_EQ(asides().size(), 1u);
  EXPECT_EQ(read(asides()[0] + "/logs/notes.txt"), "line 1\nline 2\n");
  EXPECT_FALSE(exists(asides()[0] + "/same.txt"));
  EXPECT_THAT(said, AllOf(HasSubstr("'s3://bucket/run'"), HasSubstr("logs/notes.txt"),
                          Not(HasSubstr("same.txt")), HasSubstr(asides()[0])));
  EXPECT_THAT(start_again(), Not(HasSubstr("aside")));
  EXPECT_EQ(asides().size(), 1u);
}

// A place that a former version filled, or one whose process was killed between an upload and its note.
TEST_F(RunFiles, WhereNothingIsKnownNothingIsLost) {
  for (const char* name : {"longer.txt", "other.txt", "same.txt"})
    write(place_ + "/" + name, std::string("line 1 of ") + name);
  upload();
  std::filesystem::remove(place_ + "/.stored-files");
  append(place_ + "/longer.txt", ", line 2");
  write(place_ + "/other.txt", "written anew");
  const std::string said = start_again();
  EXPECT_EQ(here("longer.txt"), "line 1 of longer.txt, line 2");
  EXPECT_EQ(here("same.txt"), "line 1 of same.txt");
  EXPECT_EQ(here("other.txt"), "line 1 of other.txt");
  ASSERT_EQ(asides().size(), 1u);
  EXPECT_EQ(read(asides()[0] + "/other.txt"), "written anew");
  EXPECT_THAT(said, AllOf(HasSubstr("other.txt"), Not(HasSubstr("longer.txt"))));
}

// Another machine has all that this one has written, and as it is now.
TEST_F(RunFiles, WhatIsCalledAsTheFrameworksOwnIsFetched) {
  const std::vector<std::string> names{".hidden",        "book.part",
                                       "env/log.txt",    "env/state.json",
                                       "rows.tmp.csv",   "checkpoint-9/notes.txt",
                                       "best/list.part", "env/checkpoint-5/state.json"};
  for (const std::string& name : names) write(place_ + "/" + name, "1");
  write(place_ + "/checkpoint-9/variables.safetensors", "v9");
  write(place_ + "/checkpoint-9/state.json", manifest("s9"));
  upload();
  const std::string others = places_.file("others"), there = local_run(kRun, others);
  for (const std::string& name : names) EXPECT_EQ(read(there + "/" + name), "1") << name;
  EXPECT_EQ(read(there + "/checkpoint-9/state.json"), manifest("s9"));
  for (const std::string& name : names) write(place_ + "/" + name, "another");
  upload();
  EXPECT_EQ(local_run(kRun, others), there);
  for (const std::string& name : names) EXPECT_EQ(read(there + "/" + name), "another") << name;
  EXPECT_THAT(glob(there + ".aside-*"), IsEmpty());
}

// `mox file sync` of a place, to which an error points, takes what is of that machine, too.
TEST_F(RunFiles, WhatIsOfAnotherMachineAloneStaysThere) {
  for (const char* name : {".stored", ".stored-files", ".lock", "checkpoint-9.saving/variables.safetensors",
                           "a.txt.tmp.12.0", "a.txt"})
    put(name, "1");
  write(place_ + "/.lock", "of here");
  start_again();
  EXPECT_THAT(list_directory(place_, {.recursive = true, .skip_dir = true}),
              testing::ElementsAre(".lock", ".stored", ".stored-files", "a.txt"));
  EXPECT_EQ(here(".lock"), "of here");
}

// A link to a directory is no reason not to begin.
TEST_F(RunFiles, LinksAroundThePlaceAreNotFollowed) {
  std::filesystem::create_directory_symlink(place_, place_ + "/around");
  put("a.txt", "1");
  start_again();
  EXPECT_EQ(here("a.txt"), "1");
}

// Too large to be read into memory: a copy finds that it is the same.
TEST_F(RunFiles, LargeFilesThatAreTheSameAreNotPutAside) {
  const std::string large = random_bytes(17 << 20);
  write(place_ + "/large", large);
  upload();
  std::filesystem::remove(place_ + "/.stored-files");
  EXPECT_THAT(start_again(), Not(HasSubstr("aside")));
  EXPECT_THAT(asides(), IsEmpty());
  EXPECT_TRUE(here("large") == large);
}

}  // namespace
}  // namespace mox::file
