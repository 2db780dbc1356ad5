#include "moxing/file/jobs/local_places.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>

#include "moxing/file/file.h"
#include "moxing/file/jobs/staging.h"
#include "runtime/base/error.h"
#include "tests/moxing/file/jobs/manifests.h"
#include "tests/moxing/file/store_fixture.h"

namespace mox::file {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_store::Fault;
using testing_store::Happening;

// An environment variable with another value for a while.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  ~ScopedVariable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

class LocalPlaces : public testing::Test {
 protected:
  LocalPlaces() {
    for (const char* name : {"a", "b", "s/c"}) store_.server.put("bucket", std::string("set/") + name, name);
  }
  int64_t gets() { return store_.server.requests_of("GetObject"); }
  void put_checkpoint(int step, bool whole = true) {
    const std::string place = "run/checkpoint-" + std::to_string(step);
    store_.server.put("bucket", place + "/variables.safetensors", "v" + std::to_string(step));
    if (whole) store_.server.put("bucket", place + "/state.json", manifest("s" + std::to_string(step)));
  }
  StoreFixture store_;
  TemporaryDirectory places_;
};

TEST_F(LocalPlaces, DataIsCopiedOnce) {
  const std::string place = local_data("s3://bucket/set", places_.path());
  EXPECT_THAT(list_directory(place, {.recursive = true, .skip_dir = true}), ElementsAre("a", "b", "s/c"));
  const int64_t before = gets();
  EXPECT_EQ(local_data("s3://bucket/set/", places_.path()), place);
  EXPECT_EQ(gets(), before);
  EXPECT_EQ(local_data("/local/data", places_.path()), "/local/data");
  EXPECT_EQ(local_data("file:///local/data", places_.path()), "/local/data");
  EXPECT_THROW(local_data("s3://bucket/none", places_.path()), NotFound);
}

// A store may have a file of the directory's name, as some tools leave an empty one.
TEST_F(LocalPlaces, ADirectoryBesideAFileOfItsName) {
  store_.server.put("bucket", "set", "");
  const std::string place = local_data("s3://bucket/set", places_.path());
  EXPECT_THAT(list_directory(place, {.recursive = true, .skip_dir = true}), ElementsAre("a", "b", "s/c"));
}

TEST_F(LocalPlaces, OneProcessOfSeveralCopies) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] { EXPECT_NE(local_data("s3://bucket/set", places_.path()), ""); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(gets(), 3);
}

TEST_F(LocalPlaces, ChangesOfTheStoreAndOfThePlaceAreMended) {
  const std::string place = local_data("s3://bucket/set", places_.path());
  store_.server.put("bucket", "set/a", "A");
  remove("s3://bucket/set/b");
  EXPECT_EQ(local_data("s3://bucket/set", places_.path()), place);
  EXPECT_EQ(read(place + "/a"), "A");
  EXPECT_FALSE(exists(place + "/b"));
  remove(place + "/a");
  write(place + "/other", "");
  local_data("s3://bucket/set", places_.path());
  EXPECT_THAT(list_directory(place, {.recursive = true, .skip_dir = true}), ElementsAre("a", "s/c"));
}

// A job that runs, and one that begins when the store has other content.
TEST_F(LocalPlaces, DataInUseStaysAsItIs) {
  const DataInUse running("s3://bucket/set", places_.path());
  store_.server.put("bucket", "set/a", "A");
  remove("s3://bucket/set/b");
  DataInUse next("s3://bucket/set", places_.path());
  EXPECT_NE(next.path(), running.path());
  EXPECT_NE(next.content(), running.content());
  EXPECT_THAT(list_directory(running.path(), {.recursive = true, .skip_dir = true}),
              ElementsAre("a", "b", "s/c"));
  EXPECT_EQ(read(running.path() + "/a"), "a");
  EXPECT_EQ(read(next.path() + "/a"), "A");
  EXPECT_FALSE(exists(next.path() + "/b"));
  // Both are found again without a copy, whoever uses them.
  const int64_t before = gets();
  const DataInUse same("s3://bucket/set", places_.path());
  EXPECT_EQ(same.path(), next.path());
  write(next.path() + "/a.mox-index", "of a reader of records");
  EXPECT_EQ(local_data("s3://bucket/set/", places_.path()), next.path());
  EXPECT_EQ(gets(), before);
  EXPECT_EQ(DataInUse("/local/data", places_.path()).path(), "/local/data");
}

TEST_F(LocalPlaces, PlacesThatNobodyUsesAreTakenAgain) {
  const auto places = [&] { return list_directory(places_.file("data"), {.skip_file = true}).size(); };
  const auto use = [&](const std::string& content) {
    store_.server.put("bucket", "set/a", content);
    return DataInUse("s3://bucket/set", places_.path());
  };
  std::string first;
  {
    const DataInUse one = use("1"), two = use("2");
    DataInUse three = use("3");
    EXPECT_EQ(places(), 3u);
    first = one.path();
    three = use("4");  // while those of 1 and 2 are in use, and that of 3 until 4 is there
    EXPECT_EQ(read(three.path() + "/a"), "4");
    EXPECT_EQ(read(two.path() + "/a"), "2");
  }
  EXPECT_EQ(use("5").path(), first);
  EXPECT_EQ(places(), 1u);
  EXPECT_EQ(list_directory(places_.file("data")).size(), 4u);  // it, its lock, who uses it, what is in it
}

TEST_F(LocalPlaces, WhatFailedIsFilledToItsEnd) {
  auto options = store_.options();
  options.attempts = 2;
  store_.use(options);
  store_.proxy.set_plan([](const std::string& operation, int64_t number) {
    return Happening{operation == "GetObject" && number > 0 ? Fault::kStatus500 : Fault::kNone};
  });
  EXPECT_THROW(local_data("s3://bucket/set", places_.path()), IoError);
  store_.proxy.set_plan({});
  EXPECT_EQ(read(local_data("s3://bucket/set", places_.path()) + "/s/c"), "s/c");
}

TEST_F(LocalPlaces, OneFile) {
  const std::string path = local_data("s3://bucket/set/s/c", places_.path());
  EXPECT_TRUE(path.ends_with("/c"));
  EXPECT_EQ(read(path), "s/c");
}

TEST_F(LocalPlaces, Checkpoints) {
  put_checkpoint(9);
  put_checkpoint(10);
  put_checkpoint(11, false);  // on its way
  const std::string newest = local_checkpoint("s3://bucket/run", places_.path());
  EXPECT_THAT(list_directory(newest), ElementsAre("checkpoint-10"));
  EXPECT_EQ(read(newest + "/checkpoint-10/state.json"), manifest("s10"));
  EXPECT_EQ(read(local_checkpoint("s3://bucket/run/checkpoint-9", places_.path()) + "/state.json"),
            manifest("s9"));
  EXPECT_THAT(message_of<NotFound>([&] { local_checkpoint("s3://bucket/set", places_.path()); }),
              HasSubstr("no checkpoint 's3://bucket/set'"));
}

// Whoever uses a checkpoint looks around it.
TEST_F(LocalPlaces, CheckpointsComeWithWhatLiesBesideThem) {
  put_checkpoint(10);
  for (const char* name : {"best/checkpoint-7/variables.safetensors", "best/checkpoint-7/state.json",
                           "best/checkpoint-8/variables.safetensors", "labels.txt", "metrics.jsonl"})
    store_.server.put("bucket", std::string("run/") + name, manifest(name));
  const std::string whole = local_checkpoint("s3://bucket/run/", places_.path());
  EXPECT_THAT(list_directory(whole, {.recursive = true, .skip_dir = true}),
              ElementsAre("best/checkpoint-7/state.json", "best/checkpoint-7/variables.safetensors",
                          "checkpoint-10/state.json", "checkpoint-10/variables.safetensors", "labels.txt"));
  EXPECT_TRUE(exists(local_checkpoint("s3://bucket/run/checkpoint-10", places_.path()) + "/../labels.txt"));
  const std::string best = local_checkpoint("s3://bucket/run/best/checkpoint-7", places_.path());
  EXPECT_EQ(read(best + "/state.json"), manifest("best/checkpoint-7/state.json"));
  EXPECT_TRUE(exists(best + "/../../labels.txt"));
  // It is copied once, and another one has a place of its own.
  const int64_t before = gets();
  write(whole + "/results.json", "of an evaluation");
  EXPECT_EQ(local_checkpoint("s3://bucket/run", places_.path()), whole);
  EXPECT_EQ(gets(), before);
  put_checkpoint(12);
  EXPECT_TRUE(exists(local_checkpoint("s3://bucket/run", places_.path()) + "/checkpoint-12"));
  EXPECT_TRUE(exists(whole + "/checkpoint-10/state.json"));
}

TEST_F(LocalPlaces, ARunOfTheStoreGoesOnHere) {
  put_checkpoint(9);
  put_checkpoint(10);
  put_checkpoint(11, false);
  store_.server.put("bucket", "run/metrics.jsonl", "of the store");
  const std::string place = local_run("s3://bucket/run", places_.path());
  EXPECT_EQ(place_of_run("s3://bucket/run/", places_.path()), place);
  EXPECT_THAT(list_directory(place, {.skip_file = true}), ElementsAre("checkpoint-10", "checkpoint-9"));
  EXPECT_EQ(read(place + "/metrics.jsonl"), "of the store");
  // Here it has gone further, and the store does not know yet.
  write(place + "/checkpoint-12/state.json", manifest("s12"));
  write(place + "/metrics.jsonl", "of here");
  local_run("s3://bucket/run", places_.path());
  EXPECT_EQ(read(place + "/metrics.jsonl"), "of here");
  // Another machine has gone further still.
  put_checkpoint(13);
  local_run("s3://bucket/run", places_.path());
  EXPECT_EQ(read(place + "/metrics.jsonl"), "of the store");
  EXPECT_EQ(read(place + "/checkpoint-13/state.json"), manifest("s13"));
}

// This machine had stopped, and another one trained the run again from an earlier step.
TEST_F(LocalPlaces, AStaleTrainingGivesWayToTheStores) {
  put_checkpoint(40);
  put_checkpoint(60);
  const std::string place = local_run("s3://bucket/run", places_.path());
  write(place + "/only_here.txt", "1");
  store_.server.put("bucket", "run/checkpoint-60/state.json", manifest("of another machine"));
  store_.server.put("bucket", "run/checkpoint-60/variables.safetensors", "of another machine");
  put_checkpoint(80);
  EXPECT_EQ(local_run("s3://bucket/run", places_.path()), place);
  EXPECT_EQ(read(place + "/checkpoint-60/state.json"), manifest("of another machine"));
  EXPECT_EQ(read(place + "/checkpoint-60/variables.safetensors"), "of another machine");
  EXPECT_TRUE(exists(place + "/checkpoint-80/state.json"));
  const std::vector<std::string> aside = glob(place + ".aside-*");
  ASSERT_EQ(aside.size(), 1u);  // nothing is lost
  EXPECT_EQ(read(aside[0] + "/checkpoint-60/state.json"), manifest("s60"));
  EXPECT_EQ(read(aside[0] + "/only_here.txt"), "1");
  // Steps that the store never had, and in the store steps that came from elsewhere.
  write(place + "/checkpoint-90/state.json", manifest("s90"));
  put_checkpoint(85);
  local_run("s3://bucket/run", places_.path());
  EXPECT_FALSE(exists(place + "/checkpoint-90"));
  EXPECT_TRUE(exists(place + "/checkpoint-85"));
}

// Of a step that this machine has saved once more the store has what it had before.
TEST_F(LocalPlaces, WhatThisMachineHasSavedAnewStays) {
  put_checkpoint(60);
  const std::string place = local_run("s3://bucket/run", places_.path());
  write(place + "/checkpoint-60/state.json", manifest("once more"));
  local_run("s3://bucket/run", places_.path());
  EXPECT_EQ(read(place + "/checkpoint-60/state.json"), manifest("once more"));
}

// As a training that is going on here has it.
TEST_F(LocalPlaces, APlaceInUseIsLeft) {
  put_checkpoint(9);
  store_.server.put("bucket", "run/metrics.jsonl", "of the store");
  const std::string place = local_run("s3://bucket/run", places_.path());
  write(place + "/metrics.jsonl", "further");
  write(place + "/.lock", "");
  const int lock = ::open((place + "/.lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(lock, LOCK_EX), 0);
  put_checkpoint(10);
  EXPECT_EQ(local_run("s3://bucket/run", places_.path()), place);
  EXPECT_EQ(read(place + "/metrics.jsonl"), "further");
  EXPECT_FALSE(exists(place + "/checkpoint-10"));
  ::close(lock);
  local_run("s3://bucket/run", places_.path());
  EXPECT_TRUE(exists(place + "/checkpoint-10"));
}

// What an upload that was killed has left, at any depth, is none.
TEST_F(LocalPlaces, OfARunOnlyWholeCheckpointsComeHere) {
  put_checkpoint(9);
  put_checkpoint(10, false);
  for (const char* name : {"best/checkpoint-7/variables.safetensors", "best/checkpoint-7/state.json",
                           "best/checkpoint-8/variables.safetensors", "snapshots/1.npy", "labels.txt"})
    store_.server.put("bucket", std::string("run/") + name, manifest(name));
  const std::string place = local_run("s3://bucket/run", places_.path());
  EXPECT_THAT(
      list_directory(place, {.recursive = true, .skip_dir = true}),
      testing::UnorderedElementsAre(".stored", ".stored-files", "best/checkpoint-7/state.json",
                                    "best/checkpoint-7/variables.safetensors", "checkpoint-9/state.json",
                                    "checkpoint-9/variables.safetensors", "labels.txt", "snapshots/1.npy"));
}

// A FIFO that nobody writes to.
TEST_F(LocalPlaces, WhatIsNoLockIsNotWaitedFor) {
  const std::string place = local_run("s3://bucket/run", places_.path());
  ASSERT_EQ(::mkfifo((place + "/.lock").c_str(), 0600), 0);
  put_checkpoint(3);
  local_run("s3://bucket/run", places_.path());
  EXPECT_TRUE(exists(place + "/checkpoint-3"));
}

// Who may write to the directory of the places could have our files written, and others removed, anywhere.
TEST_F(LocalPlaces, APlaceThatIsALinkIsNotFollowed) {
  const std::string elsewhere = places_.path() + "/elsewhere";
  std::filesystem::create_directory(elsewhere);
  write(elsewhere + "/precious", "precious");
  put_checkpoint(3);
  const auto replace = [&](const std::string& place) {
    std::filesystem::rename(place, place + "-moved");
    std::filesystem::create_directory_symlink(elsewhere, place);
  };
  replace(local_data("s3://bucket/set", places_.path()));
  replace(local_run("s3://bucket/run", places_.path()));
  for (const auto& use : {local_data, local_run}) {
    const std::string url = use == &local_data ? "s3://bucket/set" : "s3://bucket/run";
    try {
      use(url, places_.path());
      ADD_FAILURE() << url << " was copied through a link";
    } catch (const IoError& error) {
      EXPECT_THAT(error.what(), HasSubstr("is a link"));
    }
  }
  EXPECT_THAT(list_directory(elsewhere, {.recursive = true}), ElementsAre("precious"));
}

// Whoever may read a file may hold its lock.
TEST_F(LocalPlaces, LocksAreTheOwnersAlone) {
  const std::string place = local_data("s3://bucket/set", places_.path());
  int locks = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(places_.path())) {
    const std::string name = entry.path().filename();
    if (!name.ends_with(".lock") && !name.ends_with(".in-use")) continue;
    ++locks;
    EXPECT_EQ(entry.status().permissions(),
              std::filesystem::perms::owner_read | std::filesystem::perms::owner_write)
        << name;
  }
  EXPECT_GE(locks, 1);
}

// Everybody may write to the directory for temporary files.
TEST_F(LocalPlaces, BesideTemporaryFilesAreThisUsersAlone) {
  const ScopedVariable home("HOME", ""), cache("XDG_CACHE_HOME", ""), temporary("TMPDIR", places_.path());
  const std::string own = places_directory("");
  EXPECT_EQ(own, places_.file("moxing-" + std::to_string(::getuid())));
  EXPECT_EQ(places_directory(""), own);
  std::filesystem::permissions(own, std::filesystem::perms(0777));
  EXPECT_THROW(places_directory(""), FailedPrecondition);
  std::filesystem::remove(own);
  std::filesystem::create_directory_symlink(places_.path(), own);
  EXPECT_THROW(places_directory(""), FailedPrecondition);
}

TEST_F(LocalPlaces, ANewRun) {
  const std::string place = local_run("s3://bucket/new/run", places_.path());
  EXPECT_TRUE(is_directory(place));
  EXPECT_THAT(list_directory(place), ElementsAre(".stored"));
}

// A slip in the name of a bucket: nothing that is written could ever go there.
TEST_F(LocalPlaces, WhereThereIsNoBucketNothingIsKept) {
  EXPECT_THAT(message_of<NotFound>([&] { local_run("s3://bucked/new/run", places_.path()); }),
              HasSubstr("there is no bucket 'bucked'"));
  EXPECT_THAT(message_of<NotFound>([&] { Staging("s3://bucked/answers.csv", places_.path()); }),
              HasSubstr("there is no bucket 'bucked'"));
  Staging("s3://bucket/answers.csv", places_.path());
}

}  // namespace
}  // namespace mox::file
