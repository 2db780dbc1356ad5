// Where stdout goes must not decide what becomes of a training.
#include "moxing/checkpoint/checkpoint.h"
#include "tests/programs/training.h"

namespace mox {
namespace {

using testing::HasSubstr;

class LostOutput : public TrainingTest {
 protected:
  // The command of a training that prints much, followed by a redirection or a pipe of the shell.
  ProcessResult in_shell(const std::string& rest, const Words& flags = {}) const {
    std::string line;
    for (const std::string& word :
         training("mnist_softmax", log_dir_, 200, Words{"--log_every_n_steps=1"} + flags))
      line += (line.empty() ? MOX_BINARY_DIR "/bin/" : " ") + word;
    return run_process({"/bin/bash", "-c", line + " " + rest + "; exit ${PIPESTATUS[0]}"});
  }
  void expect_trained() const {
    EXPECT_EQ(load_checkpoint(log_dir_).global_step, 200);
    const std::string whole = fresh("whole");
    expect_success(train("mnist_softmax", whole, 200));
    EXPECT_EQ(checkpoint_digest(log_dir_), checkpoint_digest(whole));
  }
};

TEST_F(LostOutput, APipeThatNobodyReadsAnyMoreDoesNotEndTheTraining) {
  const ProcessResult result = in_shell("| head -n 1");
  expect_success(result);
  EXPECT_THAT(result.err, HasSubstr("standard output cannot be written (Broken pipe)"));
  expect_trained();
}

TEST_F(LostOutput, BothStreamsIntoSuchAPipe) {
  expect_success(in_shell("2>&1 | head -n 1"));
  expect_trained();
}

TEST_F(LostOutput, AFullDiskUnderStdoutDoesNotEndTheTrainingButFailsAnEvaluation) {
  const ProcessResult trained = in_shell(">/dev/full");
  expect_success(trained);
  EXPECT_THAT(trained.err, HasSubstr("standard output cannot be written (No space left on device)"));
  expect_trained();
  expect_error(in_shell(">/dev/full", {"--run_mode=eval"}),
               {"the results could not be written to standard output: No space left on device"});
}

TEST_F(LostOutput, ClosedStreamsAreNotTakenForFilesOfTheRun) {
  expect_success(in_shell(">&- 2>&- <&-"));
  expect_all_intact(log_dir_, 1);
  expect_trained();
}

}  // namespace
}  // namespace mox
