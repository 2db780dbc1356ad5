#include "moxing/file/jobs/run_upload.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <thread>

#include "moxing/file/file.h"
#include "runtime/base/error.h"
#include "tests/moxing/file/jobs/manifests.h"
#include "tests/moxing/file/store_fixture.h"

namespace mox::file {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_store::Fault;
using testing_store::Happening;

class RunUploads : public testing::Test {
 protected:
  RunUploads() {
    auto options = store_.options();
    options.attempts = 2;
    store_.use(options);
  }
  void save(int step, const std::string& content = "") {
    save_at("checkpoint-" + std::to_string(step), std::to_string(step), content);
  }
  void save_at(const std::string& name, const std::string& step, const std::string& content = "") {
    const std::string place = run_.file(name);
    write(place + ".saving/variables.safetensors", content + "v" + step);
    write(place + ".saving/state.json", manifest(content + "s" + step));
    rename(place + ".saving", place);
  }
  // Waits for what must come; a minute is for ever.
  static bool comes(const std::function<bool()>& condition) {
    for (int i = 0; i < 6000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  bool has(const std::string& key) const { return store_.server.content("bucket", key) != nullptr; }

  std::string stored(const std::string& key) const {
    const auto content = store_.server.content("bucket", key);
    return content ? *content : "";
  }

  StoreFixture store_;
  TemporaryDirectory run_;
  const RunUploadOptions often_{
      .look_every_s = 0.01, .files_every_s = 0.01, .retry_every_s = 0.02, .finish_within_s = 30};
};

TEST_F(RunUploads, CheckpointsAndFilesFollow) {
  RunUpload upload(run_.path(), "s3://bucket/run", often_);
  write(run_.file("metrics.jsonl"), "one\n");
  write(run_.file(".lock"), "");
  save(10);
  EXPECT_TRUE(comes([&] { return has("run/checkpoint-10/state.json") && has("run/metrics.jsonl"); }));
  append(run_.file("metrics.jsonl"), "two\n");
  save(20);
  remove(run_.file("checkpoint-10"), true);
  upload.finish();
  EXPECT_THAT(store_.server.keys("bucket"),
              ElementsAre("run/checkpoint-20/state.json", "run/checkpoint-20/variables.safetensors",
                          "run/metrics.jsonl"));
  EXPECT_EQ(stored("run/metrics.jsonl"), "one\ntwo\n");
}

// At whatever moment the process is killed, what has a manifest is whole: no manifest comes before what it
// tells of.
TEST_F(RunUploads, AManifestIsLast) {
  std::atomic<bool> wrong{false};
  store_.proxy.set_plan([&](const std::string& operation, int64_t) {
    if (operation != "PutObject") return Happening{};
    for (const int step : {1, 2}) {
      const std::string place = "run/checkpoint-" + std::to_string(step);
      if (has(place + "/state.json") && !has(place + "/variables.safetensors")) wrong = true;
    }
    return Happening{};
  });
  save(1);
  save(2);
  RunUpload(run_.path(), "s3://bucket/run", often_).finish();
  EXPECT_TRUE(has("run/checkpoint-2/state.json"));
  EXPECT_FALSE(wrong);
  // Another checkpoint of the same step: not whole while it is replaced.
  remove(run_.file("checkpoint-2"), true);
  save(2, "other ");
  RunUpload(run_.path(), "s3://bucket/run", often_).finish();
  EXPECT_EQ(stored("run/checkpoint-2/state.json"), manifest("other s2"));
  EXPECT_EQ(stored("run/checkpoint-2/variables.safetensors"), "other v2");
}

// What another machine has put there meanwhile is not replaced in silence; what this one had put there
// is its own.
TEST_F(RunUploads, AnotherCheckpointOfTheStoreIsSaid) {
  const auto said = [&] {
    testing::internal::CaptureStderr();
    RunUpload(run_.path(), "s3://bucket/run", often_).finish();
    return testing::internal::GetCapturedStderr();
  };
  save(2);
  EXPECT_THAT(said(), testing::Not(HasSubstr("another one")));
  remove(run_.file("checkpoint-2"), true);
  save(2, "once more ");
  EXPECT_THAT(said(), testing::Not(HasSubstr("another one")));
  store_.server.put("bucket", "run/checkpoint-2/state.json", manifest("of another machine"));
  remove(run_.file("checkpoint-2"), true);
  save(2, "and more ");
  EXPECT_THAT(said(), HasSubstr("'s3://bucket/run/checkpoint-2' is another one than that of this run"));
}

// The best state, and the checkpoints of a training before the training, lie deeper.
TEST_F(RunUploads, AManifestIsLastWhereverACheckpointLies) {
  std::atomic<bool> wrong{false};
  const std::vector<std::string> places{"run/best/checkpoint-5", "run/pretraining/checkpoint-3",
                                        "run/checkpoint-9"};
  store_.proxy.set_plan([&](const std::string& operation, int64_t) {
    if (operation != "PutObject") return Happening{};
    for (const std::string& place : places)
      if (has(place + "/state.json") && !has(place + "/variables.safetensors")) wrong = true;
    // A run goes on from its own checkpoint with the best state.
    if (has("run/checkpoint-9/state.json") && !has("run/best/checkpoint-5/state.json")) wrong = true;
    return Happening{};
  });
  save(9);
  save_at("best/checkpoint-5", "5");
  save_at("pretraining/checkpoint-3", "3");
  write(run_.file("best/checkpoint-6.saving/state.json"), "on its way");
  RunUpload(run_.path(), "s3://bucket/run", often_).finish();
  for (const std::string& place : places) EXPECT_TRUE(has(place + "/state.json")) << place;
  EXPECT_FALSE(has("run/best/checkpoint-6.saving/state.json"));
  EXPECT_FALSE(wrong);
}

TEST_F(RunUploads, WhatTheRunDeletesForAnotherOneGoes) {
  store_.server.put("bucket", "run/snapshots/0.npy", "of another run");
  write(run_.file("snapshots/1.npy"), "1");
  write(run_.file("snapshots/2.npy"), "2");
  write(run_.file("reports/1.txt"), "1");
  write(run_.file("metrics.jsonl"), "1");
  save_at("best/checkpoint-5", "5");
  RunUpload upload(run_.path(), "s3://bucket/run", often_);
  EXPECT_TRUE(comes([&] { return has("run/best/checkpoint-5/state.json") && has("run/metrics.jsonl"); }));
  // The best state of a run that went on from before it may be an earlier one.
  save_at("best/checkpoint-4", "4");
  remove(run_.file("best/checkpoint-5"), true);
  write(run_.file("snapshots/3.npy"), "3");
  remove(run_.file("snapshots/1.npy"));
  remove(run_.file("reports"), true);  // whoever did it: the store keeps what nothing has taken the place of
  upload.finish();
  EXPECT_THAT(store_.server.keys("bucket"),
              ElementsAre("run/best/checkpoint-4/state.json", "run/best/checkpoint-4/variables.safetensors",
                          "run/metrics.jsonl", "run/reports/1.txt", "run/snapshots/0.npy",
                          "run/snapshots/2.npy", "run/snapshots/3.npy"));
}

// Names are no reason to leave out what a program writes: only those that the framework gives are its own.
TEST_F(RunUploads, WhatIsOnlyCalledAlikeIsUploaded) {
  const std::vector<std::string> files{".hidden",         ".settings/colours", "a.saving/1.txt", "a.tmp.12",
                                       "book.part",       "rows.tmp.csv",      "x.previous",     "x.tmp.1.b",
                                       "y.writing-a.txt", "z.journal"};
  for (const std::string& name : files) write(run_.file(name), name);
  for (const char* name :
       {".lock", ".save-lock", ".stored", "best/.save-lock", "metrics.jsonl.tmp.4711.0", "big.moxing.part",
        "big.moxing.part~", "big.moxing.part.journal", "table.csv.writing-0123456789abcdef",
        "checkpoint-5.saving/state.json", "best/checkpoint-4.deleting/variables.safetensors"})
    write(run_.file(name), "of this machine");
  RunUpload(run_.path(), "s3://bucket/run", often_).finish();
  std::vector<std::string> expected;
  for (const std::string& name : files) expected.push_back("run/" + name);
  EXPECT_THAT(store_.server.keys("bucket"), testing::UnorderedElementsAreArray(expected));
}

TEST_F(RunUploads, AStateJsonOfAnotherProgramIsAFile) {
  RunUpload upload(run_.path(), "s3://bucket/run", often_);
  for (const std::string place : {"env", "env/checkpoint-5"}) {
    write(run_.file(place + "/state.json"), "{\"turn\": 1}");
    write(run_.file(place + "/log.txt"), "1");
  }
  write(run_.file("env/checkpoint-6/weights.bin"), "1");
  EXPECT_TRUE(comes([&] { return has("run/env/log.txt") && has("run/env/checkpoint-5/log.txt"); }));
  append(run_.file("env/log.txt"), "2");
  append(run_.file("env/checkpoint-5/log.txt"), "2");
  upload.finish();
  EXPECT_EQ(stored("run/env/log.txt"), "12");
  EXPECT_EQ(stored("run/env/checkpoint-5/log.txt"), "12");
  EXPECT_TRUE(has("run/env/checkpoint-6/weights.bin"));
}

// What somebody keeps with a checkpoint changes without it, and goes with it.
TEST_F(RunUploads, WhatIsKeptInACheckpointFollows) {
  RunUpload upload(run_.path(), "s3://bucket/run", often_);
  save(7);
  EXPECT_TRUE(comes([&] { return has("run/checkpoint-7/state.json"); }));
  write(run_.file("checkpoint-7/notes/1.txt"), "1");
  EXPECT_TRUE(comes([&] { return has("run/checkpoint-7/notes/1.txt"); }));
  append(run_.file("checkpoint-7/notes/1.txt"), "2");
  EXPECT_TRUE(comes([&] { return stored("run/checkpoint-7/notes/1.txt") == "12"; }));
  save(8);
  remove(run_.file("checkpoint-7"), true);
  upload.finish();
  EXPECT_THAT(store_.server.keys("bucket"),
              ElementsAre("run/checkpoint-8/state.json", "run/checkpoint-8/variables.safetensors"));
}

TEST_F(RunUploads, WhatIsLeftOutIsSaidOnce) {
  namespace fs = std::filesystem;
  write(run_.file("real/a.txt"), "1");
  fs::create_directory_symlink(run_.file("real"), run_.file("link"));
  fs::create_directory_symlink(run_.path(), run_.file("real/around"));
  fs::create_symlink(run_.file("nowhere"), run_.file("broken"));
  fs::create_symlink(run_.file("real/a.txt"), run_.file("a.txt"));
  testing::internal::CaptureStderr();
  {
    RunUpload upload(run_.path(), "s3://bucket/run", often_);
    EXPECT_TRUE(comes([&] { return has("run/real/a.txt") && has("run/a.txt"); }));
    append(run_.file("real/a.txt"), "2");
    EXPECT_TRUE(comes([&] { return stored("run/real/a.txt") == "12"; }));
    upload.finish();
  }
  const std::string said = testing::internal::GetCapturedStderr();
  for (const std::string name : {"link", "real/around", "broken"}) {
    const std::string words = "'" + run_.file(name) + "' is not uploaded to 's3://bucket/run'";
    EXPECT_THAT(said, HasSubstr(words));
    EXPECT_EQ(said.find(words), said.rfind(words)) << said;
  }
  EXPECT_THAT(said, HasSubstr("has all of this run, but for 'broken', 'link', 'real/around'"));
  EXPECT_THAT(store_.server.keys("bucket"), ElementsAre("run/a.txt", "run/real/a.txt"));
}

// A link in the run's place would send whatever this user may read to the store.
TEST_F(RunUploads, AFileElsewhereIsNotTheRuns) {
  namespace fs = std::filesystem;
  const TemporaryDirectory run;
  const std::string secret = run.write("elsewhere/secret", "secret"), place = run.file("run");
  run.write("run/real.txt", "1");
  fs::create_symlink(secret, place + "/notes.txt");
  fs::create_symlink("real.txt", place + "/second.txt");
  for (const char* name : {"variables.safetensors", "state.json"})
    run.write(fmt::format("run/checkpoint-3/{}", name), manifest("3"));
  fs::create_symlink(secret, place + "/checkpoint-3/notes.txt");
  for (const char* other : {"variables.safetensors", "state.json"}) {
    const std::string link = std::string("run/checkpoint-") + (*other == 'v' ? "4/" : "5/");
    for (const char* name : {"variables.safetensors", "state.json"}) run.write(link + name, manifest("4"));
    fs::rename(run.file(link + other), run.file(std::string("elsewhere/") + other));
    fs::create_symlink(run.file(std::string("elsewhere/") + other), run.file(link + other));
  }
  testing::internal::CaptureStderr();
  RunUpload(place, "s3://bucket/run", often_).finish();
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(store_.server.keys("bucket"),
              ElementsAre("run/checkpoint-3/state.json", "run/checkpoint-3/variables.safetensors",
                          "run/checkpoint-5/variables.safetensors", "run/real.txt", "run/second.txt"));
  for (const char* name : {"notes.txt", "checkpoint-3/notes.txt", "checkpoint-4/variables.safetensors",
                           "checkpoint-5/state.json"})
    EXPECT_THAT(said,
                HasSubstr(fmt::format("'{}/{}' is not uploaded to 's3://bucket/run': it is a link out of "
                                      "the run's directory",
                                      place, name)));
  EXPECT_THAT(said, HasSubstr("put a copy in its place"));
}

TEST_F(RunUploads, AStoreThatIsLostIsCaughtUpWith) {
  RunUpload upload(run_.path(), "s3://bucket/run", often_);
  save(1);
  EXPECT_TRUE(comes([&] { return has("run/checkpoint-1/state.json"); }));
  store_.proxy.set_away(true);
  save(2);
  save(3);
  remove(run_.file("checkpoint-1"), true);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  store_.proxy.set_away(false);
  EXPECT_TRUE(
      comes([&] { return has("run/checkpoint-3/state.json") && !has("run/checkpoint-1/state.json"); }));
  upload.finish();
}

// The store has all of it, and this machine does not know: it goes with the run's all the same.
TEST_F(RunUploads, WhatArrivedWithoutAnAnswerGoesWithTheRuns) {
  std::atomic<bool> lost{true};
  store_.proxy.set_plan([&](const std::string& operation, int64_t) {
    if (!lost) return Happening{};
    // After the manifest nothing is answered: the next round would find it.
    if (has("run/checkpoint-1/state.json")) return Happening{Fault::kStatus500};
    return operation == "PutObject" && has("run/checkpoint-1/variables.safetensors")
               ? Happening{Fault::kLostAnswer}
               : Happening{};
  });
  save(1);
  RunUpload upload(run_.path(), "s3://bucket/run", often_);
  EXPECT_TRUE(comes([&] { return has("run/checkpoint-1/state.json") && store_.proxy.faults_made() > 10; }));
  save(2);
  remove(run_.file("checkpoint-1"), true);
  lost = false;
  EXPECT_TRUE(
      comes([&] { return has("run/checkpoint-2/state.json") && !has("run/checkpoint-1/state.json"); }));
  upload.finish();
  EXPECT_THAT(store_.server.keys("bucket"),
              ElementsAre("run/checkpoint-2/state.json", "run/checkpoint-2/variables.safetensors"));
}

TEST_F(RunUploads, AFileThatArrivedWithoutAnAnswerGoesWithTheRuns) {
  std::atomic<bool> lost{true};
  store_.proxy.set_plan([&](const std::string& operation, int64_t) {
    if (!lost) return Happening{};
    if (has("run/b.txt")) return Happening{Fault::kStatus500};
    return operation == "PutObject" && has("run/a.txt") ? Happening{Fault::kLostAnswer} : Happening{};
  });
  write(run_.file("a.txt"), "a");
  write(run_.file("b.txt"), "b");
  RunUpload upload(run_.path(), "s3://bucket/run", often_);
  EXPECT_TRUE(comes([&] { return has("run/b.txt") && store_.proxy.faults_made() > 10; }));  // it was given up
  remove(run_.file("b.txt"));
  lost = false;
  EXPECT_TRUE(comes([&] { return !has("run/b.txt"); }));
  upload.finish();
  EXPECT_TRUE(has("run/a.txt"));
}

// Caches and directories for temporary files are cleaned by others, and disks come off.
TEST_F(RunUploads, WhatThisMachineHasLostTheStoreKeeps) {
  const std::string away = run_.path() + ".away";
  RunUpload upload(run_.path(), "s3://bucket/run", often_);
  save(1);
  save(2);
  EXPECT_TRUE(
      comes([&] { return has("run/checkpoint-1/state.json") && has("run/checkpoint-2/state.json"); }));
  std::filesystem::rename(run_.path(), away);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_TRUE(has("run/checkpoint-1/state.json"));
  EXPECT_TRUE(has("run/checkpoint-2/state.json"));
  std::filesystem::create_directory(run_.path());  // and nothing in it
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_TRUE(has("run/checkpoint-1/state.json"));
  EXPECT_TRUE(has("run/checkpoint-2/variables.safetensors"));
  save(3);
  upload.finish();
  EXPECT_THAT(store_.server.keys("bucket"),
              ElementsAre("run/checkpoint-3/state.json", "run/checkpoint-3/variables.safetensors"));
  std::filesystem::remove_all(away);
}

TEST_F(RunUploads, AStoreThatDoesNotComeBackIsAnErrorThatNamesThePlace) {
  RunUploadOptions options = often_;
  options.finish_within_s = 0.1;
  RunUpload upload(run_.path(), "s3://bucket/run", options);
  store_.proxy.set_away(true);
  save(1);
  EXPECT_THAT(
      message_of<IoError>([&] { upload.finish(); }),
      testing::AllOf(HasSubstr(run_.path()), HasSubstr("s3://bucket/run"), HasSubstr("mox file sync")));
}

}  // namespace
}  // namespace mox::file
