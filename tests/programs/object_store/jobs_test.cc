// Trainings that live in an object store: data, checkpoints and logs.
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "moxing/checkpoint/checkpoint.h"
#include "runtime/base/file.h"
#include "tests/distributed/job.h"
#include "tests/moxing/image/images.h"
#include "tests/programs/object_store/store_of_programs.h"
#include "tests/programs/training.h"

namespace mox {
namespace {

using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

class StoredJob : public TrainingTest {
 protected:
  StoredJob() {
    for (const auto& entry : fs::directory_iterator(data_))
      store_.server.put("bucket", "data/" + entry.path().filename().string(), read_file(entry.path()));
  }
  // The later of two values of a flag counts.
  Words stored(int64_t steps, const Words& flags = {}) const {
    return training("mnist_softmax", "s3://bucket/run", steps,
                    Words{"--data_url=s3://bucket/data", "--file.local_directory=" + local_} + flags);
  }
  // The run as the store has it.
  std::string fetched() {
    std::string directory = fresh("fetched");
    for (const std::string& key : store_.server.keys("bucket")) {
      if (!key.starts_with("run/")) continue;
      const std::string path = directory + "/" + key.substr(4);
      fs::create_directories(fs::path(path).parent_path());
      write_file_atomically(path, *store_.server.content("bucket", key));
    }
    return directory;
  }
  void expect_no_secret(const std::string& directory) const {
    for (const auto& entry : fs::recursive_directory_iterator(directory)) {
      if (!entry.is_regular_file()) continue;
      const std::string content = read_file(entry.path());
      EXPECT_EQ(content.find(store_.keys.secret), std::string::npos) << entry.path();
      EXPECT_EQ(content.find(store_.keys.access), std::string::npos) << entry.path();
    }
  }

  bool has_checkpoint() const {
    const std::vector<std::string> keys = store_.server.keys("bucket");
    return std::ranges::any_of(keys, [](const std::string& key) { return key.ends_with("/state.json"); });
  }

  // Ends the job by kill -9 once its first checkpoint is in the store, which takes nothing after it: however
  // fast or slow its steps are, it has not come to its end. Until then happens what `plan` says.
  void kill_after_first_checkpoint(const Words& command, const testing_store::FaultProxy::Plan& plan = {}) {
    store_.proxy.set_plan(
        [&, plan](const std::string& operation, int64_t number) -> testing_store::Happening {
          if (operation == "PutObject" && has_checkpoint()) return {testing_store::Fault::kStatus503};
          return plan ? plan(operation, number) : testing_store::Happening{};
        });
    Process job(command);
    ASSERT_TRUE(job.wait_until([&] { return has_checkpoint(); }));
    job.send(SIGKILL);
    EXPECT_EQ(job.wait().signal, SIGKILL);
    wait_until_free();  // the ranks follow their mpirun
    store_.proxy.set_plan(plan);
    ASSERT_EQ(list_checkpoints(fetched()).size(), 1u);
  }

  // Until no run holds a directory of this machine.
  void wait_until_free() const {
    for (const auto& run : fs::directory_iterator(local_ + "/runs")) {
      const int file = ::open((run.path() / ".lock").c_str(), O_RDWR | O_CLOEXEC);
      if (file < 0) continue;  // no run is there
      ASSERT_EQ(::flock(file, LOCK_EX), 0);
      ::close(file);
    }
  }

  StoreOfPrograms store_;
  const std::string local_ = fresh("local");
};

TEST_F(StoredJob, EqualsTheLocalOne) {
  const ProcessResult local = train("mnist_softmax", log_dir_, 40, {"--save_model_steps=10"});
  expect_success(local);
  const ProcessResult result = run_process(stored(40, {"--save_model_steps=10"}));
  expect_success(result);
  EXPECT_EQ(test_lines(result.out), test_lines(local.out));
  const std::string run = fetched();
  EXPECT_TRUE(latest_content(run) == latest_content(log_dir_));
  EXPECT_EQ(metrics_without_times(run), metrics_without_times(log_dir_));
  EXPECT_THAT(read_file(run + "/configuration.yaml"), HasSubstr("s3://bucket/data"));
  expect_no_secret(run);
  expect_no_secret(local_);
  EXPECT_FALSE(fs::exists("s3:"));
  // Evaluation from there, by a machine that has nothing.
  const ProcessResult evaluated = run_process(training(
      "mnist_softmax", fresh("none"), 40,
      {"--run_mode=eval", "--checkpoint_path=s3://bucket/run", "--file.local_directory=" + fresh("other")}));
  expect_success(evaluated);
  EXPECT_EQ(test_lines(evaluated.out), test_lines(local.out));
}

TEST_F(StoredJob, GoesOnAfterKill9OnAnEmptiedDisk) {
  const Words flags = {"--save_model_steps=200"};
  kill_after_first_checkpoint(job_of(2, stored(1000000, flags)));
  // As far as the machine's pace has led it, and then some.
  const int64_t steps = list_checkpoints(fetched()).at(0).step + 300;
  expect_success(run_process(job_of(2, training("mnist_softmax", log_dir_, steps, flags))));
  fs::remove_all(local_);
  expect_success(run_process(job_of(2, stored(steps, flags))));
  const std::string run = fetched();
  EXPECT_TRUE(latest_content(run) == latest_content(log_dir_));
  EXPECT_EQ(metrics_without_times(run), metrics_without_times(log_dir_));
}

// Photographs that are read where they lie, through resets, by two ranks; and nothing of them stays
// on the disk.
TEST_F(StoredJob, StreamedPhotographsTrainAsLocalOnesAndGoOnAfterKill9) {
  const std::string photographs = fresh("photographs");
  for (int i = 0; i < 40; ++i)
    for (const char* split : {"train", "validation"}) {
      const std::string name =
          std::string(split) + (i % 2 ? "/dark/" : "/light/") + std::to_string(i) + ".jpg";
      image::Bitmap picture = image::picture(48, 40, static_cast<uint64_t>(i) + (split[0] == 't' ? 0 : 100));
      for (uint8_t& value : picture.pixels) value = static_cast<uint8_t>(i % 2 ? value / 4 : 255 - value / 4);
      const std::string content = image::encode_jpeg(picture);
      file::write(photographs + "/" + name, content);
      store_.server.put("bucket", "photographs/" + name, content);
    }
  const auto job = [&](const std::string& data, const std::string& run) {
    return job_of(2, {"image_classifier", "--data_url=" + data, "--train_url=" + run, "--model.name=cifarnet",
                      "--model.image_size=32", "--batch_size=4", "--max_number_of_steps=300",
                      "--save_model_steps=20", "--save_model_secs=0", "--log_every_n_steps=0",
                      "--optimizer.name=momentum", "--optimizer.learning_rate=0.001", "--threads=1",
                      "--data_memory_mb=64", "--file.local_directory=" + local_});
  };
  expect_success(run_process(job(photographs, log_dir_)));
  std::atomic<int64_t> faults{0};
  const auto resets = [&](const std::string& operation, int64_t number) -> testing_store::Happening {
    if (operation != "GetObject" || number % 5 != 2) return {};
    ++faults;
    return {testing_store::Fault::kResetInAnswer, 0.7};
  };
  const Words command = job("s3://bucket/photographs", "s3://bucket/run");
  kill_after_first_checkpoint(command, resets);
  EXPECT_FALSE(fs::exists(local_ + "/data"));
  fs::remove_all(local_);
  const ProcessResult result = run_process(command);
  expect_success(result);
  EXPECT_GT(faults.load(), 10);
  EXPECT_FALSE(fs::exists(local_ + "/data"));
  const std::string run = fetched();
  EXPECT_TRUE(latest_content(run) == latest_content(log_dir_));
  EXPECT_EQ(metrics_without_times(run), metrics_without_times(log_dir_));
  expect_no_secret(run);
  expect_no_secret(local_);
  EXPECT_EQ((result.out + result.err).find(store_.keys.secret), std::string::npos);
  // The other way: a copy on this machine, and the same weights.
  const std::string copied = fresh("copied");
  expect_success(run_process(job("s3://bucket/photographs", copied) + Words{"--data.cache=directory"}));
  EXPECT_TRUE(fs::exists(local_ + "/data"));
  EXPECT_TRUE(latest_content(copied) == latest_content(log_dir_));
}

TEST_F(StoredJob, ALostStoreIsSaidAndCaughtUpWith) {
  expect_success(train("mnist_softmax", log_dir_, 60, {"--save_model_steps=5"}));
  store_.proxy.set_plan([](const std::string& operation, int64_t number) {
    return testing_store::Happening{operation == "PutObject" && number < 4 ? testing_store::Fault::kStatus500
                                                                           : testing_store::Fault::kNone};
  });
  const ProcessResult result = run_process(stored(60, {"--save_model_steps=5", "--file.attempts=2"}));
  expect_success(result);
  EXPECT_THAT(result.out + result.err, HasSubstr("cannot be uploaded to 's3://bucket/run'"));
  EXPECT_TRUE(latest_content(fetched()) == latest_content(log_dir_));
}

// Whoever wants to go home need not wait for it.
TEST_F(StoredJob, TheEndOfARunWithoutItsStoreIsSaidAndCanBeEnded) {
  Process job(stored(1000000, {"--save_model_steps=100000", "--file.deadline_seconds=20"}));
  ASSERT_TRUE(job.wait_until([&] {
    const std::vector<std::string> keys = store_.server.keys("bucket");
    return std::ranges::any_of(keys, [](const std::string& key) { return key.ends_with("metrics.jsonl"); });
  }));
  store_.proxy.set_away(true);
  job.send(SIGINT);
  const double start = monotonic_seconds();
  ASSERT_TRUE(job.wait_until([&] { return job.said("uploading what is left of the run"); }));
  EXPECT_LT(monotonic_seconds() - start, 15);
  EXPECT_TRUE(job.said("Ctrl-C ends that"));
  // Until then the place on this machine is its own.
  for (const auto& run : fs::directory_iterator(local_ + "/runs")) {
    const int file = ::open((run.path() / ".lock").c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) continue;
    EXPECT_NE(::flock(file, LOCK_EX | LOCK_NB), 0) << "another run could begin in " << run.path();
    ::close(file);
  }
  job.send(SIGINT);
  const ProcessResult result = job.wait(20);
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.signal, SIGINT);
}

TEST_F(StoredJob, TheUploadOfARunThatHasEndedIsEndedByOneSignal) {
  store_.proxy.set_plan([](const std::string& operation, int64_t) {
    return testing_store::Happening{operation == "PutObject" ? testing_store::Fault::kStatus500
                                                             : testing_store::Fault::kNone};
  });
  Process job(stored(5, {"--file.attempts=1"}));
  ASSERT_TRUE(job.wait_until([&] { return job.said("Ctrl-C ends that"); }));
  job.send(SIGINT);
  const ProcessResult result = job.wait(20);
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.signal, SIGINT);
}

// Each rank of a machine looks at the store; the second one meets other content there.
TEST_F(StoredJob, RanksThatFindOtherDataAreAnError) {
  const std::string images = "data/train-images-idx3-ubyte";
  std::string other = *store_.server.content("bucket", images);
  other.back() = static_cast<char>(other.back() + 1);
  store_.proxy.set_plan([&](const std::string&, int64_t) {
    std::error_code none_yet;
    for (const auto& entry : fs::directory_iterator(local_ + "/data", none_yet))
      if (entry.path().extension() == ".complete") store_.server.put("bucket", images, other);
    return testing_store::Happening{};
  });
  const ProcessResult result = run_process(job_of(2, stored(40, {"--train_url=" + log_dir_})));
  EXPECT_NE(result.status, 0);
  EXPECT_THAT(result.out + result.err,
              HasSubstr("'s3://bucket/data' has changed while the ranks copied it: ranks 0 and 1"));
}

TEST_F(StoredJob, AStoreThatFailsForOneRankEndsTheJob) {
  Words well = stored(40, {"--train_url=" + log_dir_, "--file.attempts=2", "--file.deadline_seconds=10"});
  well.front() = MOX_BINARY_DIR "/bin/" + well.front();
  for (const char* variable : {"SECRET_ACCESS_KEY=another", "S3_ENDPOINT=http://127.0.0.1:9"})
    for (const int rank : {0, 1}) {
      const Words failing = Words{"/usr/bin/env", variable} + well;
      const ProcessResult result =
          run_process(job_of_commands(rank == 0 ? std::vector{failing, well} : std::vector{well, failing}));
      EXPECT_FALSE(result.timed_out);
      EXPECT_EQ(result.status, 1) << variable;
      const std::string said = result.out + result.err;
      EXPECT_THAT(said, testing::AllOf(HasSubstr("rank " + std::to_string(rank) + " (host"),
                                       HasSubstr("s3://bucket/data"), Not(HasSubstr("other content"))))
          << variable;
    }
}

// data_url is of each machine.
TEST_F(StoredJob, RanksMayHaveTheirDataElsewhere) {
  const Words flags{"--train_url=" + log_dir_}, here{"--data_url=" + data_};
  expect_success(run_process(job_of(2, stored(40, flags + here))));
  const std::string content = latest_content(log_dir_);
  for (const bool is_first : {true, false}) {
    const std::string run = fresh("other");
    const Words copied = stored(40, {"--train_url=" + run}), local = copied + here;
    expect_success(run_process(is_first ? job_of_two(copied, local) : job_of_two(local, copied)));
    EXPECT_TRUE(latest_content(run) == content);
  }
}

// However long: what a rank waits for is another one's work.
TEST_F(StoredJob, AMachineThatCopiesLongIsWaitedFor) {
  const Words flags{"--train_url=" + log_dir_, "--stall_warning_s=1", "--stall_abort_s=6"};
  expect_success(run_process(stored(4, {"--train_url=" + fresh("first")})));
  store_.proxy.set_plan([](const std::string& operation, int64_t) {
    if (operation == "GetObject") std::this_thread::sleep_for(std::chrono::seconds(4));
    return testing_store::Happening{};
  });
  const ProcessResult result = run_process(
      job_of_two(stored(4, flags), stored(4, flags + Words{"--file.local_directory=" + fresh("second")})));
  expect_success(result);
  EXPECT_THAT(result.out + result.err, HasSubstr("copying from the object store to its machine"));
}

// What another job brings to this machine is not what this one trains on.
TEST_F(StoredJob, AnExchangedDataSetIsNotThatOfARunningJob) {
  Process running(stored(1000000, {"--train_url=" + log_dir_}));
  const auto places = [&] {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(local_ + "/data"))
      if (entry.is_directory()) found.push_back(entry.path());
    std::ranges::sort(found);
    return found;
  };
  ASSERT_TRUE(running.wait_until([&] { return fs::exists(log_dir_ + "/metrics.jsonl"); }));
  ASSERT_EQ(places().size(), 1u);
  const std::string name = "train-images-idx3-ubyte";
  const std::string before = read_file(places()[0] / name);
  std::string other = before;
  other.back() = static_cast<char>(other.back() + 1);
  store_.server.put("bucket", "data/" + name, other);
  expect_success(run_process(stored(4, {"--train_url=" + fresh("next")})));
  running.send(SIGKILL);
  running.wait();
  ASSERT_EQ(places().size(), 2u);
  EXPECT_TRUE(read_file(places()[0] / name) == before);
  EXPECT_TRUE(read_file(places()[1] / name) == other);
}

TEST_F(StoredJob, WhatTheStoreRefusesIsAnErrorBeforeTheFirstStep) {
  expect_error(run_process(stored(40, {"--data_url=s3://bucket/none"})),
               {"no file and no directory 's3://bucket/none'"}, 2);
  expect_error(run_process(stored(40, {"--train_url=s3://bucked/run"})), {"there is no bucket 'bucked'"}, 2);
  testing_store::Keys other;
  other.secret = "another";
  store_.server.set_keys(other);
  const ProcessResult result = run_process(stored(40));
  expect_error(result, {"SignatureDoesNotMatch", "s3://bucket/data"});
  EXPECT_THAT(result.out + result.err, Not(HasSubstr(store_.keys.secret)));
}

}  // namespace
}  // namespace mox
