// keep_best in jobs of several ranks; in one process: tests/moxing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "moxing/checkpoint/best_checkpoint.h"
#include "moxing/checkpoint/checkpoint.h"
#include "tests/distributed/job.h"

namespace mox {
namespace {

using testing::HasSubstr;

constexpr int64_t kSteps = 40, kBest = 16;

class RanksThatKeepTheBest : public TrainingTest {
 protected:
  static ProcessResult train_on(const TestPlacement& placement, const std::string& log_dir,
                                const Words& flags = {}) {
    return run_process(
        job_of(placement.ranks,
               Words{"distributed_program", "--train_url=" + log_dir, "--best_step=" + std::to_string(kBest),
                     "--max_number_of_steps=" + std::to_string(kSteps), "--eval_every_n_steps=8",
                     "--save_model_steps=8", "--keep_checkpoints=2", "--keep_best.metric=distance",
                     "--keep_best.restore", "--log_every_n_steps=0", "--threads=2", "--logical_replicas=4",
                     "--num_devices=" + std::to_string(placement.devices)} +
                   flags));
  }

  // Of each rank: "of step N, DIGEST".
  static std::vector<std::string> end_states(const ProcessResult& result, int ranks) {
    std::vector<std::string> states;
    for (int rank = 0; rank < ranks; ++rank) {
      const std::string before = "rank " + std::to_string(rank) + " ends with the state ";
      const size_t at = result.out.find(before);
      if (at == std::string::npos) {
        ADD_FAILURE() << "rank " << rank << " says nothing: " << result.out;
        continue;
      }
      const size_t begin = at + before.size();
      states.push_back(result.out.substr(begin, result.out.find('\n', begin) - begin));
    }
    return states;
  }
};

TEST_F(RanksThatKeepTheBest, EachEndsWithTheStateOfTheBestStep) {
  std::set<std::string> states;  // the same bits, however many ranks there are
  for (const TestPlacement& placement : {TestPlacement{1, 1}, {2, 1}, {4, 1}, {2, 2}})
    for (const char* scheme : {"replicated_host", "parameter_server"}) {
      SCOPED_TRACE(placement.name() + ' ' + scheme);
      const std::string log_dir = fresh(placement.name() + scheme);
      const ProcessResult result = train_on(placement, log_dir, {"--variable_update=" + std::string(scheme)});
      expect_success(result);
      EXPECT_THAT(result.out,
                  HasSubstr("best distance: 0 at global step 16, kept in '" + log_dir + "/best'"));
      EXPECT_THAT(result.out, HasSubstr("test distance: 0.0000\n"));
      for (const std::string& state : end_states(result, placement.ranks)) {
        EXPECT_THAT(state, HasSubstr("of step 16, " + checkpoint_digest(best_directory(log_dir))));
        states.insert(state);
      }
      // What the run would go on from is its last state, all the same.
      EXPECT_EQ(load_checkpoint(log_dir).global_step, kSteps);
    }
  EXPECT_EQ(states.size(), 1U);
}

TEST_F(RanksThatKeepTheBest, WithoutALogDirEachKeepsItsOwn) {
  for (const int ranks : {2, 4}) {
    const ProcessResult result = train_on({ranks, 1}, "", {"--save_model_steps=0"});
    expect_success(result);
    EXPECT_THAT(result.out, HasSubstr("best distance: 0 at global step 16\n"));
    for (const std::string& state : end_states(result, ranks)) EXPECT_THAT(state, HasSubstr("of step 16, "));
  }
}

TEST_F(RanksThatKeepTheBest, AJobThatGoesOnRestoresWhatAnEarlierStartHasKept) {
  expect_success(train_on({2, 1}, log_dir_, {"--max_number_of_steps=24"}));
  const ProcessResult result = train_on({4, 1}, log_dir_);
  expect_success(result);
  EXPECT_THAT(result.out, HasSubstr("the state of global step 16 is restored"));
  const std::string digest = checkpoint_digest(best_directory(log_dir_));
  for (const std::string& state : end_states(result, 4)) EXPECT_THAT(state, HasSubstr(digest));
  EXPECT_THAT(result.out, HasSubstr("test distance: 0.0000\n"));
}

}  // namespace
}  // namespace mox
