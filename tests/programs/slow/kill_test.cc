// Longer than the quick test of its kind: more kills, more steps, and for the softmax the real data if
// it is installed.
#include <filesystem>

#include "tests/programs/killing.h"

namespace mox {
namespace {

class Killed : public TrainingTest {
 protected:
  void expect_killed_equals_whole(const std::string& program, int64_t steps, const Words& flags, int kills) {
    const auto command = [&](const std::string& log_dir) { return training(program, log_dir, steps, flags); };
    const ProcessResult whole = run_process(command(log_dir_));
    expect_success(whole);
    const Killings seen = kill_and_restart(command, log_dir_, whole, kills, 12);
    EXPECT_EQ(seen.kills, kills);
    EXPECT_GT(seen.while_saving, 0);
  }
};

TEST_F(Killed, SoftmaxFiftyTimes) {
  Words flags{"--batch_size=100", "--save_model_steps=25", "--eval_every_n_steps=300"};
  if (std::filesystem::exists(kFashionMnist)) flags.push_back(std::string("--data_url=") + kFashionMnist);
  expect_killed_equals_whole("mnist_softmax", 1000, flags, 50);
}
TEST_F(Killed, LenetTwentyTimes) {
  expect_killed_equals_whole("fashion_lenet", 40, {"--save_model_steps=7", "--eval_every_n_steps=15"}, 20);
}
TEST_F(Killed, LenetOnOneThreadTwentyTimes) {
  expect_killed_equals_whole("fashion_lenet", 40,
                             {"--save_model_steps=7", "--eval_every_n_steps=15", "--threads=1"}, 20);
}

}  // namespace
}  // namespace mox
