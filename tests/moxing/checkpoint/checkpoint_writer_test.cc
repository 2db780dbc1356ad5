#include "moxing/checkpoint/checkpoint_writer.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <thread>

#include "moxing/checkpoint/best_checkpoint.h"
#include "moxing/checkpoint/internal/checkpoint_directory.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "tests/moxing/checkpoint/checkpoint_samples.h"
#include "tests/support/message_of.h"

namespace mox {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// Makes every save fail: a file takes the directory's place.
void break_directory(const std::string& log_dir) {
  fs::remove_all(log_dir);
  write_file_atomically(log_dir, "in the way");
}

TEST(CheckpointWriter, WaitReturnsWhenAllIsDurable) {
  const std::string log_dir = fresh_directory("writer");
  CheckpointWriter writer(log_dir, {.keep_last = 2});
  EXPECT_EQ(writer.last_saved(), std::nullopt);
  writer.wait();  // nothing to wait for
  for (int64_t step = 1; step <= 5; ++step) writer.submit(sample_checkpoint(step, static_cast<float>(step)));
  writer.wait();
  EXPECT_EQ(writer.last_saved(), log_dir + "/checkpoint-5");
  EXPECT_THAT(names_in(log_dir), ElementsAre("checkpoint-4", "checkpoint-5"));
  EXPECT_TRUE(is_sample(load_checkpoint(log_dir), 5, 5));
}

TEST(CheckpointWriter, TheDestructorFinishesWhatIsQueued) {
  const std::string log_dir = fresh_directory("writer_destructor");
  {
    CheckpointWriter writer(log_dir);
    writer.submit(sample_checkpoint(1, 1, 100000));
    writer.submit(sample_checkpoint(2, 2));
  }
  EXPECT_THAT(names_in(log_dir), ElementsAre("checkpoint-1", "checkpoint-2"));
}

TEST(CheckpointWriter, OneIsSavedOneWaitsAndTheThirdBlocks) {
  const std::string log_dir = fresh_directory("writer_blocks");
  CheckpointWriter writer(log_dir);
  std::future<void> third;
  {
    const HeldDirectory held(log_dir);
    const internal::DirectoryLock lock(held);  // nothing can be saved as long as we hold it
    writer.submit(sample_checkpoint(1, 1));
    writer.submit(sample_checkpoint(2, 2));
    third = std::async(std::launch::async, [&] { writer.submit(sample_checkpoint(3, 3)); });
    EXPECT_EQ(third.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
    EXPECT_THAT(names_in(log_dir), ElementsAre());
  }
  third.get();
  writer.wait();
  EXPECT_THAT(names_in(log_dir), ElementsAre("checkpoint-1", "checkpoint-2", "checkpoint-3"));
}

// Whoever may read a file can hold its lock.
TEST(CheckpointWriter, TheLockOfASaveIsTheOwnersAlone) {
  const std::string log_dir = fresh_directory("writer_lock");
  const mode_t before = ::umask(0);
  save_checkpoint(log_dir, sample_checkpoint(1, 1));
  ::umask(before);
  struct stat status {};
  ASSERT_EQ(::stat((log_dir + "/.save-lock").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST(CheckpointWriter, AnErrorReachesTheNextCallOnce) {
  const std::string log_dir = fresh_directory("writer_error");
  CheckpointWriter writer(log_dir);
  writer.submit(sample_checkpoint(1, 1));
  writer.wait();
  break_directory(log_dir);
  writer.submit(sample_checkpoint(2, 2));
  try {
    writer.wait();
    FAIL() << "the error was lost";
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the checkpoint of step 2 could not be saved"));
  }
  writer.wait();  // told once
  EXPECT_EQ(writer.last_saved(), log_dir + "/checkpoint-1");

  writer.submit(sample_checkpoint(3, 3));
  std::this_thread::sleep_for(
      std::chrono::milliseconds(50));  // submit reports it whether or not it has happened yet
  EXPECT_THROW(
      {
        writer.submit(sample_checkpoint(4, 4));
        writer.submit(sample_checkpoint(5, 5));
        writer.submit(sample_checkpoint(6, 6));
      },
      IoError);
  EXPECT_THROW(
      {
        writer.submit(sample_checkpoint(7, 7));
        writer.wait();
      },
      IoError);

  fs::remove(log_dir);
  writer.submit(sample_checkpoint(8, 8));  // the writer is as good as new
  writer.wait();
  EXPECT_TRUE(is_sample(load_checkpoint(log_dir), 8, 8));
}

TEST(CheckpointWriter, TheDestructorDoesNotThrowAnError) {
  const std::string log_dir = fresh_directory("writer_destructor_error");
  {
    CheckpointWriter writer(log_dir);
    break_directory(log_dir);
    writer.submit(sample_checkpoint(1, 1));
  }
  EXPECT_EQ(read_file(log_dir), "in the way");
  fs::remove(log_dir);
}

TEST(CheckpointWriter, ADirectoryThatCannotBeWrittenIsReportedAtOnce) {
  const std::string log_dir = fresh_directory("writer_refused");
  write_file_atomically(log_dir, "in the way");
  EXPECT_THROW(CheckpointWriter writer(log_dir), IoError);
  EXPECT_THROW(CheckpointWriter writer(log_dir, {.keep_last = 0}), InvalidArgument);
  fs::remove(log_dir);
}

TEST(CheckpointWriter, SubmitsFromManyThreadsAreAllSaved) {
  const std::string log_dir = fresh_directory("writer_threads");
  CheckpointWriter writer(log_dir, {.keep_last = 100});
  std::vector<std::thread> threads;
  for (int64_t thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      for (int64_t i = 0; i < 5; ++i) {
        const int64_t step = thread * 5 + i;
        writer.submit(sample_checkpoint(step, static_cast<float>(step)));
      }
    });
  for (std::thread& thread : threads) thread.join();
  writer.wait();
  const auto entries = list_checkpoints(log_dir);
  ASSERT_EQ(entries.size(), 20u);
  for (const CheckpointEntry& entry : entries)
    EXPECT_TRUE(is_sample(load_checkpoint(entry.path), entry.step, static_cast<float>(entry.step)));
}

// Whoever may write to a log_dir could have the checkpoints of another run deleted: what a run makes below
// its log_dir is no link, whereas the log_dir may be one.
TEST(CheckpointWriter, ALinkInPlaceOfWhatARunMakesIsNotFollowed) {
  namespace fs = std::filesystem;
  const std::string others = fresh_directory("writer_others"), log_dir = fresh_directory("writer_link");
  for (const int64_t step : {3, 7}) save_checkpoint(others, sample_checkpoint(step, 1));
  fs::create_directory(others + "/checkpoint-9.saving");
  const auto before = names_in(others);
  fs::create_directory(log_dir);
  const std::string best = best_directory(log_dir);
  fs::create_directory_symlink(others, best);
  const auto refused = [&](const auto& work) {
    EXPECT_THAT(message_of<IoError>(work),
                AllOf(HasSubstr("'" + best + "' is a link"), HasSubstr("Remove it")));
    EXPECT_EQ(names_in(others), before);
  };
  refused([&] { CheckpointWriter(best, {.keep_last = 1}, DirectoryLink::kRefused); });
  refused([&] {
    internal::save_checkpoint(best, sample_checkpoint(8, 1), {.keep_last = 1}, DirectoryLink::kRefused);
  });
  refused([&] { delete_checkpoints_but(best, 7); });
  CheckpointWriter(best, {.keep_last = 1}).submit(sample_checkpoint(8, 1));
  EXPECT_THAT(names_in(others), ElementsAre("checkpoint-8"));
}

}  // namespace
}  // namespace mox
