// Saving when the disk refuses, and when the process dies in the middle.
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <new>
#include <thread>

#include "moxing/checkpoint/checkpoint.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/random.h"
#include "tests/moxing/checkpoint/checkpoint_samples.h"
#include "tests/support/small_disk.h"

namespace mox {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string save_error(const std::string& log_dir, const Checkpoint& checkpoint) {
  try {
    save_checkpoint(log_dir, checkpoint);
  } catch (const IoError& error) {
    return error.what();
  }
  ADD_FAILURE() << "was saved without an error";
  return "";
}

TEST(CheckpointFailure, AFullDiskLeavesTheCheckpointBefore) {
  const SmallDisk disk("size=512k");
  SKIP_UNLESS_MOUNTED(disk);
  const std::string log_dir = disk.path() + "/run";
  save_checkpoint(log_dir, sample_checkpoint(1, 1));
  EXPECT_THAT(save_error(log_dir, sample_checkpoint(2, 2, 200000)),
              AllOf(HasSubstr("step 2"), HasSubstr("No space left on device"), HasSubstr("untouched")));
  EXPECT_THAT(names_in(log_dir), ElementsAre("checkpoint-1"));
  EXPECT_TRUE(is_sample(load_checkpoint(log_dir), 1, 1));
  save_checkpoint(log_dir, sample_checkpoint(3, 3));  // a smaller one fits
  EXPECT_TRUE(is_sample(load_checkpoint(log_dir), 3, 3));
}

// Saves with ever more room until one fits, so that every write, and the making of every file, has been the
// one that fails.
void save_with_growing_room(const std::string& log_dir, int64_t step,
                            const std::function<void()>& make_room) {
  for (int attempt = 0;; ++attempt) {
    ASSERT_LT(attempt, 64);
    try {
      save_checkpoint(log_dir, sample_checkpoint(step, 2, 3000), {.keep_last = 1});
      EXPECT_GT(attempt, 3);
      EXPECT_TRUE(is_sample(load_checkpoint(log_dir), step, 2));
      return;
    } catch (const IoError& error) {
      EXPECT_THAT(error.what(), HasSubstr("No space left on device"));
    }
    EXPECT_THAT(names_in(log_dir), ElementsAre("checkpoint-1"));
    EXPECT_TRUE(is_sample(load_checkpoint(log_dir), 1, 1));
    make_room();
  }
}

TEST(CheckpointFailure, ADiskFullAtAnyMomentLeavesTheCheckpointBefore) {
  const SmallDisk disk("size=256k");
  SKIP_UNLESS_MOUNTED(disk);
  for (int64_t step : {2, 1}) {  // a new step, and the replacement of the same
    const std::string log_dir = disk.path() + "/run" + std::to_string(step);
    save_checkpoint(log_dir, sample_checkpoint(1, 1));
    const std::string filler = disk.path() + "/filler";
    std::ofstream(filler) << std::string(1 << 20, 'x');  // as much as there is room for
    save_with_growing_room(log_dir, step,
                           [&] { fs::resize_file(filler, fs::file_size(filler) / 4096 * 4096 - 4096); });
    fs::remove(filler);
    fs::remove_all(log_dir);
  }
}

TEST(CheckpointFailure, NoRoomForAnotherFileLeavesTheCheckpointBefore) {
  const SmallDisk disk("size=1m,nr_inodes=20");
  SKIP_UNLESS_MOUNTED(disk);
  const std::string log_dir = disk.path() + "/run";
  save_checkpoint(log_dir, sample_checkpoint(1, 1));
  std::vector<std::string> fillers;
  for (;;) {
    const std::string filler = disk.path() + "/filler" + std::to_string(fillers.size());
    if (!std::ofstream(filler)) break;
    fillers.push_back(filler);
  }
  ASSERT_GT(fillers.size(), 5u);
  save_with_growing_room(log_dir, 2, [&] {
    fs::remove(fillers.back());
    fillers.pop_back();
  });
}

TEST(CheckpointFailure, AReadOnlyDirectoryIsReportedBeforeTraining) {
  const SmallDisk disk("size=512k");
  SKIP_UNLESS_MOUNTED(disk);
  const std::string log_dir = disk.path() + "/run";
  save_checkpoint(log_dir, sample_checkpoint(1, 1));
  ASSERT_TRUE(disk.make_read_only());
  EXPECT_THAT(save_error(log_dir, sample_checkpoint(2, 2)), HasSubstr("Read-only file system"));
  EXPECT_THROW(prepare_checkpoint_directory(log_dir), IoError);
  EXPECT_THROW(prepare_checkpoint_directory(disk.path() + "/other"), IoError);
  EXPECT_THAT(names_in(log_dir), ElementsAre("checkpoint-1"));
  EXPECT_TRUE(is_sample(load_checkpoint(log_dir), 1, 1));  // reading needs no writing
}

TEST(CheckpointFailure, AFileInPlaceOfTheDirectoryIsReported) {
  const std::string log_dir = fresh_directory("file_in_place");
  write_file_atomically(log_dir, "a file");
  EXPECT_THAT(save_error(log_dir, sample_checkpoint(2, 2)), HasSubstr(log_dir));
  EXPECT_THAT(save_error(log_dir + "/below", sample_checkpoint(2, 2)), HasSubstr(log_dir));
  EXPECT_THROW(prepare_checkpoint_directory(log_dir), IoError);
  EXPECT_EQ(read_file(log_dir), "a file");
  fs::remove(log_dir);
}

TEST(CheckpointFailure, AFileInPlaceOfACheckpointIsReplacedByIt) {
  const std::string log_dir = fresh_directory("file_in_checkpoint");
  fs::create_directories(log_dir);
  write_file_atomically(log_dir + "/checkpoint-2", "a file");
  save_checkpoint(log_dir, sample_checkpoint(2, 2));
  EXPECT_TRUE(is_sample(load_checkpoint(log_dir), 2, 2));
  EXPECT_THAT(names_in(log_dir), ElementsAre("checkpoint-2"));
}

// What the child process has been told is durable, in memory that it shares with us.
struct SharedProgress {
  std::atomic<int64_t> step{0};
};

// Saves step after step, each twice, from `first` on, until it is killed.
[[noreturn]] void save_until_killed(const std::string& log_dir, int64_t first, SharedProgress* progress) {
  try {
    for (int64_t step = first;; ++step) {
      for (int again = 0; again < 2; ++again)
        save_checkpoint(log_dir, sample_checkpoint(step, static_cast<float>(step), 2000),
                        {.keep_last = 2, .keep_every_steps = 50});
      progress->step = step;
    }
  } catch (...) {
    ::_exit(3);
  }
}

TEST(CheckpointFailure, AProcessKilledAtAnyMomentLeavesAnIntactCheckpoint) {
  const std::string log_dir = fresh_directory("killed");
  void* shared =
      ::mmap(nullptr, sizeof(SharedProgress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto* progress = new (shared) SharedProgress;
  const RandomStream random(1, 2);
  int64_t first = 1;
  for (uint64_t round = 0; round < 30; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) save_until_killed(log_dir, first, progress);
    while (progress->step < first) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(round, 20000)));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child could not save";

    const Checkpoint loaded = load_checkpoint(log_dir);
    EXPECT_TRUE(is_sample(loaded, loaded.global_step, static_cast<float>(loaded.global_step)));
    EXPECT_GE(loaded.global_step, progress->step);
    for (const CheckpointEntry& entry : list_checkpoints(log_dir))
      EXPECT_NO_THROW(load_checkpoint(entry.path));
    first = loaded.global_step + 1;
  }
  prepare_checkpoint_directory(log_dir);
  for (const std::string& name : names_in(log_dir)) EXPECT_EQ(name.find('.'), name.npos) << name;
  ::munmap(shared, sizeof(SharedProgress));
}

}  // namespace
}  // namespace mox
