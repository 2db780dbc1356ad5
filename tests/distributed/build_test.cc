// Ranks that run different builds of one program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/distributed/job.h"

namespace mox {
namespace {

using testing::ContainsRegex;
using testing::Not;

constexpr const char* kProgram = MOX_BINARY_DIR "/bin/distributed_program";

class Builds : public TrainingTest {
 protected:
  ProcessResult run_with(const std::string& program_of_rank_2, const std::string& mode = "train") const {
    const Words flags = {"--train_url=" + log_dir_, "--max_number_of_steps=3", "--log_every_n_steps=0",
                         "--run_mode=" + mode};
    const Words usual = Words{kProgram} + flags;
    return run_process(job_of_commands({usual, usual, Words{program_of_rank_2} + flags}));
  }
};

TEST_F(Builds, OfRanksAreCompared) {
  for (const char* mode : {"train", "eval"}) {
    const ProcessResult result = run_with(std::string(kProgram) + "_of_another_build", mode);
    EXPECT_FALSE(result.timed_out);
    EXPECT_EQ(result.status, 1) << result.err;
    EXPECT_THAT(result.err,
                ContainsRegex("rank 0 \\(host [^)]+\\) and rank 2 \\(host [^)]+\\) do not run the same "
                              "thing. The first difference is in the build of the program: "
                              "'[0-9a-f]{16,}' against '[0-9a-f]{16,}'"));
    EXPECT_FALSE(std::filesystem::exists(log_dir_)) << "the run had begun";
  }
}

TEST_F(Builds, MayLieInDifferentPlaces) {
  const std::string copy = fresh("copy");
  std::filesystem::copy_file(kProgram, copy);
  expect_success(run_with(copy));
}

}  // namespace
}  // namespace mox
