// Variables whose gradients are one tensor: several replicas learn what one with the whole batch learns.
#include <gtest/gtest.h>

#include "moxing/layers/layers.h"
#include "runtime/base/random.h"
#include "tests/moxing/small_run.h"

namespace mox {
namespace {

constexpr int64_t kVectorCount = 22, kVectorWidth = 12;

Dataset labelled_vectors() {
  std::vector<float> values(kVectorCount * kVectorWidth);
  RandomStream(6, 1).fill_normal(values, 0, 0, 1);
  std::vector<int64_t> labels(kVectorCount);
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int64_t>(i % 5);
  return Dataset::from_arrays({Array::from<float>({kVectorCount, kVectorWidth}, values),
                               Array::from<int64_t>({kVectorCount}, labels)});
}

// The biases of "a" and "b" have one gradient, and that of "shift" is read further down the backward pass.
ModelSpec two_branches(const Inputs& in, ModeKeys) {
  auto [x, y] = in.take<2>();
  x = layers::dense(x, 8, {.name = "a"}) + layers::dense(x, 8, {.name = "b"});
  x = get_variable("shift", {8}, zeros()) + relu(x);
  x = layers::dense(relu(layers::dense(x, 8, {.name = "c"}) + x), 5, {.name = "logits"});
  const Tensor loss = reduce_mean(sparse_softmax_cross_entropy(x, y));
  return {.loss = loss, .log_info = {{"loss", loss}}};
}

class SharedGradient : public testing::Test {
 protected:
  // Three epochs in steps of 8, the last of which has fewer.
  static Checkpoint train(int64_t replicas, const std::string& devices) {
    const ScopedConfiguration configuration({"--threads=4", "--log_level=error", "--num_devices=" + devices,
                                             "--logical_replicas=" + std::to_string(replicas)});
    const std::string log_dir = fresh_directory("shared_gradient");
    run_or_throw({.input_fn = [](ModeKeys) { return labelled_vectors().repeat(3); },
                  .model_fn = two_branches,
                  .optimizer_fn = get_optimizer_fn("momentum", {.learning_rate = 0.1, .momentum = 0.9}),
                  .batch_size = 8 / replicas,
                  .log_dir = log_dir,
                  .log_every_n_steps = 0,
                  .save_summary_steps = 0,
                  .save_model_secs = 0});
    return load_checkpoint(log_dir);
  }
};

TEST_F(SharedGradient, ReplicasLearnWhatOneWithTheWholeBatchLearns) {
  const Checkpoint whole = train(1, "1");
  for (const int64_t replicas : {2, 4})
    for (const char* devices : {"1", "2"})
      EXPECT_LT(largest_difference(whole, train(replicas, devices)), 1e-4)
          << replicas << " replicas on " << devices << " devices";
}

TEST_F(SharedGradient, HasTheSameBitsOnAnyNumberOfDevices) {
  const Checkpoint one = train(4, "1");
  for (const char* devices : {"2", "4"}) EXPECT_EQ(largest_difference(one, train(4, devices)), 0) << devices;
}

}  // namespace
}  // namespace mox
