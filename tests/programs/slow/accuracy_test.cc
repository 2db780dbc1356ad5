// What the smallest program learns from the real data set, whatever the order of the samples.
#include <filesystem>

#include "tests/programs/training.h"

namespace mox {
namespace {

class Accuracy : public TrainingTest {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kFashionMnist))
      GTEST_SKIP() << "needs dataset-fashion-mnist, a Debian package (./dev setup installs it): "
                   << kFashionMnist;
  }
  // Of mnist_softmax on the 10,000 images of the test part, after `steps` batches of 100.
  double softmax_accuracy(int64_t steps, int seed) {
    const ProcessResult result = train(
        "mnist_softmax", fresh("seed_" + std::to_string(seed)), steps,
        {std::string("--data_url=") + kFashionMnist, "--batch_size=100", "--seed=" + std::to_string(seed)});
    expect_success(result);
    const std::string line = test_lines(result.out), name = "test accuracy: ";
    const size_t at = line.find(name);
    return at == std::string::npos ? 0 : std::stod(line.substr(at + name.size()));
  }
};

TEST_F(Accuracy, OfTheSoftmaxAfterAThousandSteps) {
  for (const int seed : {0, 1, 2}) EXPECT_GE(softmax_accuracy(1000, seed), 0.75) << "seed " << seed;
}
TEST_F(Accuracy, OfTheSoftmaxAfterThreeThousandSteps) {
  for (const int seed : {0, 1, 2, 3, 4}) EXPECT_GE(softmax_accuracy(3000, seed), 0.82) << "seed " << seed;
}

}  // namespace
}  // namespace mox
