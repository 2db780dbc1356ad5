// Whole networks on real images give the same bits on every placement, in both precisions, and
// when they move.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <ostream>

#include "moxing/checkpoint/checkpoint.h"
#include "tests/distributed/job.h"

namespace mox {
namespace {

constexpr const char* kFashionMnist = "/usr/share/datasets/fashion-mnist";

struct Network {
  std::string program;
  int steps, batch_size;
  std::string precision;
};

void PrintTo(const Network& network, std::ostream* out) {
  *out << network.program << ' ' << network.precision;
}

std::string name_of(const testing::TestParamInfo<Network>& info) {
  return info.param.program + "_" + info.param.precision;
}

class Networks : public TrainingTest, public testing::WithParamInterface<Network> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kFashionMnist))
      GTEST_SKIP() << "needs dataset-fashion-mnist, a Debian package";
    data_directory_ = kFashionMnist;
    if (GetParam().program != "cifar_resnet") return;
    data_directory_ = fresh("cifar");
    expect_success(
        run_process({"/usr/bin/env", "python3", MOX_SOURCE_DIR "/models/cifar_resnet/make_cifar_files.py",
                     data_directory_, "--samples", "400"}));
  }

  // Trains to `steps` with four replicas; a run that is continued has their number in its checkpoint.
  ProcessResult train_on(const TestPlacement& placement, const std::string& log_dir, int steps) const {
    const Network& network = GetParam();
    return Process(job_of(placement.ranks,
                          {network.program, "--data_url=" + data_directory_, "--train_url=" + log_dir,
                           "--precision=" + network.precision, "--logical_replicas=4", "--threads=4",
                           "--num_devices=" + std::to_string(placement.devices),
                           "--batch_size=" + std::to_string(network.batch_size), "--eval_batch_size=500",
                           "--max_number_of_steps=" + std::to_string(steps), "--log_every_n_steps=0",
                           "--save_summary_steps=0", "--inter_mode=none"}))
        .wait(280);
  }

  std::string data_directory_;
};

TEST_P(Networks, AreTheSameOnFivePlacements) {
  std::string expected;
  for (const TestPlacement& placement : {TestPlacement{1, 1}, {1, 2}, {2, 1}, {2, 2}, {4, 1}}) {
    const std::string log_dir = fresh(placement.name());
    expect_success(train_on(placement, log_dir, GetParam().steps));
    EXPECT_EQ(load_checkpoint(log_dir).global_step, GetParam().steps);
    if (expected.empty()) expected = checkpoint_digest(log_dir);
    EXPECT_EQ(checkpoint_digest(log_dir), expected) << placement.name();
  }
}

TEST_P(Networks, MoveInTheMiddleOfAnEpoch) {
  const std::string whole = fresh("whole"), moved = fresh("moved");
  expect_success(train_on({1, 1}, whole, 9));
  expect_success(train_on({1, 2}, moved, 2));
  expect_success(train_on({2, 1}, moved, 5));
  expect_success(train_on({1, 1}, moved, 9));
  EXPECT_EQ(checkpoint_digest(moved), checkpoint_digest(whole));
}

INSTANTIATE_TEST_SUITE_P(Precisions, Networks,
                         testing::Values(Network{"fashion_lenet", 100, 8, "fp32"},
                                         Network{"fashion_lenet", 100, 8, "bf16"},
                                         Network{"cifar_resnet", 12, 16, "fp32"},
                                         Network{"cifar_resnet", 12, 16, "bf16"}),
                         name_of);

}  // namespace
}  // namespace mox
