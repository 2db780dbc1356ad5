// Runs that fail by what they compute, and programs with a mistake in the user's own code.
#include <cmath>

#include "moxing/checkpoint/checkpoint.h"
#include "tests/programs/training.h"

namespace mox {
namespace {

using FailingRun = TrainingTest;

TEST_F(FailingRun, ALossThatIsNotFiniteEndsTheRunAndKeepsTheGoodCheckpoints) {
  expect_success(train("fashion_lenet", log_dir_, 4, {"--save_model_steps=2"}));
  const std::string before = latest_content(log_dir_);
  expect_error(
      train("fashion_lenet", log_dir_, 40, {"--optimizer.learning_rate=1e10"}),
      {"the loss is nan at global step", "learning rate 1e+10", "checkpoints saved before are untouched"});
  EXPECT_TRUE(latest_content(log_dir_) == before);
  for (const NamedArray& variable : load_checkpoint(log_dir_).variables)
    for (float value : variable.value.values<float>()) ASSERT_TRUE(std::isfinite(value)) << variable.name;

  // The same from the start: the initial checkpoint is all there is, and the run goes on from it.
  const std::string anew = fresh("anew"), whole = fresh("whole");
  expect_error(train("fashion_lenet", anew, 40, {"--optimizer.learning_rate=1e10", "--save_model_steps=1"}),
               {"the loss is"});
  expect_all_intact(anew, 1);
  for (const CheckpointEntry& entry : list_checkpoints(anew))
    for (const NamedArray& variable : load_checkpoint(entry.path).variables)
      for (float value : variable.value.values<float>())
        ASSERT_TRUE(std::isfinite(value)) << entry.path << variable.name;
}

TEST_F(FailingRun, AShapeThatDoesNotFitIsNamedWithThePlaceInTheProgram) {
  expect_error(train("faulty_program", log_dir_, 4, {"--fault=shape"}),
               {"matmul", "[7, 784]", "[783, 10]", "faulty_program.cc:"}, 2);
}

TEST_F(FailingRun, AnExceptionOfTheProgramIsReported) {
  expect_error(train("faulty_program", log_dir_, 4, {"--fault=exception"}), {"a mistake of the program"});
}

TEST_F(FailingRun, AnErrorOutsideOfRunIsReportedAndDoesNotAbort) {
  expect_error(train("faulty_program", log_dir_, 4, {"--fault=optimizer"}), {"momentun", "momentum"}, 2);
}

TEST_F(FailingRun, DataThatEndsBeforeTheLastStepIsSaid) {
  const ProcessResult result = train("faulty_program", log_dir_, 100);  // one pass over 300 samples in sevens
  expect_success(result);
  EXPECT_THAT(result.err, testing::HasSubstr("ended at step 43, before step 100"));
  EXPECT_EQ(load_checkpoint(log_dir_).global_step, 43);
}

TEST_F(FailingRun, ATrainingWithoutAnEndIsRefused) {
  expect_error(train("mnist_softmax", log_dir_, 0), {"would never end", "max_number_of_steps or max_epochs"},
               2);
}

TEST_F(FailingRun, AnImpossibleDropoutIsRefused) {
  expect_error(train("fashion_lenet", log_dir_, 1, {"--dropout=1.5"}), {"dropout", "1.5", "fashion_lenet"},
               2);
}

}  // namespace
}  // namespace mox
