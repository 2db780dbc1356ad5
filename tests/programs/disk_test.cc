// Disks that are full or read-only, and log_dirs that are none.
#include <sys/mount.h>

#include <filesystem>

#include "moxing/checkpoint/checkpoint.h"
#include "runtime/base/file.h"
#include "tests/programs/training.h"
#include "tests/support/small_disk.h"

namespace mox {
namespace {

class Disk : public TrainingTest {
 protected:
  static void enlarge(const SmallDisk& disk) {
    ASSERT_EQ(::mount("moxing_test", disk.path().c_str(), "tmpfs", MS_REMOUNT, "size=64m"), 0);
  }
  // With room again, the run goes on and ends like one that never met the full disk.
  void expect_goes_on(const std::string& log_dir, int64_t steps, const Words& flags) {
    expect_success(train("mnist_softmax", log_dir, steps, flags));
    const std::string whole = fresh("whole");
    expect_success(train("mnist_softmax", whole, steps, flags));
    EXPECT_TRUE(latest_content(log_dir) == latest_content(whole));
    EXPECT_EQ(metrics_without_times(log_dir), metrics_without_times(whole));
  }
};

TEST_F(Disk, FullWhileSavingKeepsWhatIsThereAndGoesOnLater) {
  const SmallDisk disk("size=256k");
  SKIP_UNLESS_MOUNTED(disk);
  const std::string log_dir = disk.path() + "/run";
  const Words flags{"--save_model_steps=5", "--keep_checkpoints=100", "--save_summary_steps=5"};
  expect_error(train("mnist_softmax", log_dir, 200, flags),
               {"the checkpoint of step", "could not be saved in '" + log_dir, "No space left on device",
                "checkpoints that were there are untouched", "run again"});
  expect_all_intact(log_dir, 3);
  EXPECT_LT(load_checkpoint(log_dir).global_step, 200);
  // Still full: the same, and still nothing lost.
  const std::string before = latest_content(log_dir);
  expect_error(train("mnist_softmax", log_dir, 200, flags), {"No space left on device"});
  EXPECT_TRUE(latest_content(log_dir) == before);
  enlarge(disk);
  expect_goes_on(log_dir, 200, flags);
}

TEST_F(Disk, FullWhileWritingMetricsKeepsTheCheckpointAndTearsNoLine) {
  const SmallDisk disk("size=192k");
  SKIP_UNLESS_MOUNTED(disk);
  const std::string log_dir = disk.path() + "/run";
  const Words flags{"--save_summary_steps=1", "--keep_checkpoints=1"};
  expect_error(train("mnist_softmax", log_dir, 3000, flags),
               {"cannot write the metrics file '" + log_dir + "/metrics.jsonl'", "No space left on device",
                "checkpoints are untouched"});
  expect_all_intact(log_dir, 1);
  enlarge(disk);
  expect_goes_on(log_dir, 3000, flags);
}

TEST_F(Disk, FullFromTheBeginning) {
  const SmallDisk disk("size=16k");
  SKIP_UNLESS_MOUNTED(disk);
  expect_error(train("mnist_softmax", disk.path() + "/run", 20),
               {"No space left on device", disk.path() + "/run"});
}

TEST_F(Disk, ReadOnly) {
  const SmallDisk disk("size=4m");
  SKIP_UNLESS_MOUNTED(disk);
  const std::string log_dir = disk.path() + "/run";
  expect_success(train("mnist_softmax", log_dir, 10));
  const std::string before = latest_content(log_dir);
  ASSERT_TRUE(disk.make_read_only());
  expect_error(train("mnist_softmax", log_dir, 20),
               {log_dir, "Read-only file system", "choose another log_dir"}, 2);
  expect_error(train("mnist_softmax", disk.path() + "/new", 20),
               {disk.path() + "/new", "Read-only file system"}, 2);
  EXPECT_TRUE(latest_content(log_dir) == before);
  expect_success(train("mnist_softmax", log_dir, 20, {"--run_mode=eval"}));  // reads only
}

TEST_F(Disk, LogDirThatIsAFile) {
  write_file_atomically(log_dir_, "precious");
  expect_error(train("mnist_softmax", log_dir_, 20), {log_dir_, "choose another log_dir"}, 2);
  expect_error(train("mnist_softmax", log_dir_ + "/below", 20), {log_dir_ + "/below", "Not a directory"}, 2);
  expect_error(train("mnist_softmax", "/proc/none", 20), {"/proc/none", "choose another log_dir"}, 2);
  EXPECT_EQ(read_file(log_dir_), "precious");
  std::filesystem::remove(log_dir_);
}

TEST_F(Disk, NoLogDirTrainsAndSaysThatNothingIsSaved) {
  const ProcessResult result = train("mnist_softmax", "", 20);
  expect_success(result);
  EXPECT_THAT(result.err, testing::HasSubstr("nothing of this run is saved"));
}

}  // namespace
}  // namespace mox
