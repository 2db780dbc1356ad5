#include "tests/programs/killing.h"

#include <signal.h>

#include <filesystem>
#include <random>

#include "moxing/checkpoint/checkpoint.h"
#include "tests/moxing/checkpoint/checkpoint_samples.h"

namespace mox {
namespace {

bool is_saving(const std::string& log_dir) {
  std::error_code error;
  for (std::filesystem::directory_iterator it(log_dir, error), end; !error && it != end; it.increment(error))
    if (it->path().string().ends_with(".saving")) return true;
  return false;
}

}  // namespace

Killings kill_and_restart(const std::function<Words(const std::string& log_dir)>& command,
                          const std::string& reference, const ProcessResult& uninterrupted, int kills,
                          uint64_t seed) {
  constexpr int kKinds = 4;
  constexpr int kEarly = 1, kSaving = 3;  // the others: at any moment
  constexpr double kShareOfStart = 0.15;
  constexpr double kShareOfLife = 0.5;  // so that a training usually outlives a few kills
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> moments(0, uninterrupted.seconds * kShareOfLife);
  Killings seen;
  std::string log_dir = fresh_directory("killed");
  bool finished = false;
  for (int attempt = 0; !finished || seen.kills < kills; ++attempt) {
    if (attempt > 20 * kills) {
      ADD_FAILURE() << "the training does not get on: " << seen.kills << " kills in " << attempt << " starts";
      return seen;
    }
    if (finished) log_dir = fresh_directory("killed" + std::to_string(attempt));
    Process process(command(log_dir));
    if (seen.kills < kills) {
      const int kind = seen.kills % kKinds;
      const double moment = monotonic_seconds() + moments(random) * (kind == kEarly ? kShareOfStart : 1);
      if (kind == kSaving)
        process.wait_until([&] { return monotonic_seconds() > moment && is_saving(log_dir); });
      else
        process.wait_until([&] { return monotonic_seconds() > moment; });
      process.send(SIGKILL);
    }
    const ProcessResult result = process.wait();
    finished = result.signal != SIGKILL;
    if (!finished) {
      ++seen.kills;
      seen.before_the_first_checkpoint += !latest_checkpoint(log_dir);
      seen.while_saving += is_saving(log_dir);
      continue;
    }
    ++seen.completions;
    expect_success(result);
    EXPECT_TRUE(latest_content(log_dir) == latest_content(reference)) << "after " << seen.kills << " kills";
    EXPECT_EQ(metrics_without_times(log_dir), metrics_without_times(reference));
    EXPECT_EQ(test_lines(result.out), test_lines(uninterrupted.out));
    expect_all_intact(log_dir, 1);
    EXPECT_FALSE(is_saving(log_dir));
    if (testing::Test::HasFailure()) return seen;
  }
  testing::Test::RecordProperty("kills", seen.kills);
  std::printf("%d kills, %d before the first checkpoint, %d while saving; %d trainings came to their end\n",
              seen.kills, seen.before_the_first_checkpoint, seen.while_saving, seen.completions);
  return seen;
}

}  // namespace mox
