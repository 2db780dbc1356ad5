// The pre-set jobs on several ranks: the same bits as on one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "moxing/checkpoint/checkpoint.h"
#include "runtime/base/file.h"
#include "tests/distributed/job.h"

namespace mox {
namespace {

class ImageJobs : public TrainingTest {
 protected:
  ImageJobs() {
    expect_success(
        run_process({"/usr/bin/env", "python3", MOX_SOURCE_DIR "/models/cifar_resnet/make_cifar_files.py",
                     folder_, "--samples", "60"}));
  }

  // The digest of the weights after some steps of two logical replicas.
  std::string trained(int ranks, const std::string& name, const Words& command) const {
    const std::string log_dir = fresh(name);
    const ProcessResult result =
        run_process(job_of(ranks, command + Words{"--data_url=" + folder_, "--train_url=" + log_dir,
                                                  "--batch_size=8", "--max_number_of_steps=3", "--threads=2",
                                                  "--logical_replicas=2", "--log_level=warning"}));
    expect_success(result);
    return checkpoint_digest(log_dir);
  }

  const std::string folder_ = fresh("cifar");
};

TEST_F(ImageJobs, CifarResnetRunsOnAnyNumberOfRanks) {
  const Words job{"cifar_resnet", "--model_name=cifarnet", "--optimizer.learning_rate=0.001"};
  const Words scaled = job + Words{"--scale_learning_rate=linear"};
  const std::string expected = trained(1, "one", scaled);
  EXPECT_EQ(trained(2, "two", scaled), expected);
  EXPECT_NE(trained(1, "unscaled", job), expected);
}

TEST_F(ImageJobs, ImageClassifierRunsOnAnyNumberOfRanks) {
  const Words job{"image_classifier", "--data.format=cifar10", "--model.name=cifarnet",
                  "--optimizer.learning_rate=0.001"};
  EXPECT_EQ(trained(2, "two", job), trained(1, "one", job));
}

TEST_F(ImageJobs, OnlyRankZeroNeedsTheDirectoryOfResults) {
  const std::string log_dir = fresh("results");
  const auto rank = [&](const std::string& directory) {
    return Words{"image_classifier",       "--data.format=cifar10",    "--model.name=cifarnet",
                 "--data_url=" + folder_,  "--train_url=" + directory, "--batch_size=8",
                 "--max_number_of_steps=2"};
  };
  expect_success(run_process(job_of_two(rank(log_dir), rank("/proc/nowhere"))));
  EXPECT_THAT(read_file(log_dir + "/labels.txt"), testing::HasSubstr("0: "));
}

}  // namespace
}  // namespace mox
