// sync_batch_norm: replicas that normalise together learn what one replica with the whole batch learns.
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "moxing/layers/layers.h"
#include "runtime/base/error.h"
#include "runtime/base/random.h"
#include "tests/moxing/small_run.h"

namespace mox {
namespace {

constexpr int64_t kAllImages = 22, kChannels = 3, kSide = 4;

// Each image has another mean, so that statistics over a part of the batch are far from those over all of it.
Dataset images() {
  std::vector<float> pixels(kAllImages * kChannels * kSide * kSide);
  RandomStream(5, 1).fill_normal(pixels, 0, 0, 1);
  const size_t image = pixels.size() / kAllImages;
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] += static_cast<float>(i / image % 7);
  std::vector<int64_t> labels(kAllImages);
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int64_t>(i % 5);
  return Dataset::from_arrays({Array::from<float>({kAllImages, kChannels, kSide, kSide}, pixels),
                               Array::from<int64_t>({kAllImages}, labels)});
}

ModelSpec network(const Inputs& in, ModeKeys mode) {
  auto [x, y] = in.take<2>();
  x = layers::conv2d(x, 6, {3, 3}, {.name = "conv"});
  x = layers::batch_norm(x, mode, {.name = "norm", .momentum = 0.5f, .activation = relu});
  x = layers::dense(flatten(x), 7, {.name = "hidden"});
  x = layers::batch_norm(x, mode, {.name = "flat_norm", .momentum = 0.5f});
  const Tensor loss = reduce_mean(sparse_softmax_cross_entropy(layers::dense(x, 5, {.name = "logits"}), y));
  return {.loss = loss, .log_info = {{"loss", loss}}};
}

class SyncBatchNorm : public testing::Test {
 protected:
  // Trains `epochs` of the images, in steps of 8, by `replicas` with the flags.
  Checkpoint train(int64_t replicas, const std::vector<std::string>& flags, int64_t epochs = 3,
                   const ModelFn& model = network) {
    std::vector<std::string> words = {"--threads=4", "--log_level=error",
                                      "--logical_replicas=" + std::to_string(replicas)};
    words.insert(words.end(), flags.begin(), flags.end());
    const ScopedConfiguration configuration(words);
    const std::string log_dir = fresh_directory("sync_batch_norm");
    run_or_throw({.input_fn = [epochs](ModeKeys) { return images().repeat(epochs); },
                  .model_fn = model,
                  .optimizer_fn = get_optimizer_fn("momentum", {.learning_rate = 0.05, .momentum = 0.9}),
                  .batch_size = 8 / replicas,
                  .log_dir = log_dir,
                  .log_every_n_steps = 0,
                  .save_summary_steps = 0,
                  .save_model_secs = 0});
    return load_checkpoint(log_dir);
  }
};

// 66 samples in steps of 8: the ninth has two, so that of four replicas one has a batch and three have none.
TEST_F(SyncBatchNorm, ReplicasLearnWhatOneWithTheWholeBatchLearns) {
  const Checkpoint whole = train(1, {});
  for (const int64_t replicas : {1, 2, 4, 8}) {
    const Checkpoint together = train(replicas, {"--sync_batch_norm=true"});
    EXPECT_EQ(together.global_step, 9);
    EXPECT_LT(largest_difference(whole, together), 2e-4) << replicas << " replicas";
  }
  EXPECT_GT(largest_difference(whole, train(4, {})), 1e-2) << "without it each replica normalises by itself";
}

TEST_F(SyncBatchNorm, HasTheSameBitsOnAnyNumberOfDevices) {
  const Checkpoint one = train(4, {"--sync_batch_norm=true", "--num_devices=1"});
  for (const char* devices : {"--num_devices=2", "--num_devices=4"})
    EXPECT_EQ(largest_difference(one, train(4, {"--sync_batch_norm=true", devices})), 0) << devices;
  for (const char* scheme : {"--variable_update=replicated", "--variable_update=parameter_server"})
    EXPECT_EQ(largest_difference(one, train(4, {"--sync_batch_norm=true", "--num_devices=2", scheme})), 0)
        << scheme;
}

TEST_F(SyncBatchNorm, AnExceptionOfOneReplicaEndsTheStepOfAll) {
  const auto failing = [](const Inputs& in, ModeKeys mode) -> ModelSpec {
    ModelSpec spec = network(in, mode);
    // The loss of a replica whose labels are out of range is refused while it computes.
    spec.loss =
        reduce_mean(sparse_softmax_cross_entropy(layers::dense(flatten(in[0]), 3, {.name = "few"}), in[1])) +
        spec.loss * 0.0f;
    spec.log_info = {{"loss", spec.loss}};
    return spec;
  };
  EXPECT_THROW(train(4, {"--sync_batch_norm=true"}, 3, failing), Error);
}

TEST_F(SyncBatchNorm, ASumOverReplicasThatNeedNotMeetIsRefused) {
  const auto summing = [](const Inputs& in, ModeKeys) -> ModelSpec {
    ModelSpec spec = network(in, ModeKeys::EVAL);  // a replica of one sample has nothing to normalise by
    spec.loss = spec.loss + replica_sum(reduce_mean(in[0])) * 0.0f;
    spec.log_info = {{"loss", spec.loss}};
    return spec;
  };
  // Replicas that share a lane, and some with lanes of their own: at the end of the data one of these would
  // wait for ever.
  for (const auto& [replicas, devices] : {std::pair(8, "--num_devices=1"), std::pair(2, "--num_devices=2")}) {
    try {
      train(replicas, {devices}, 3, summing);
      ADD_FAILURE() << replicas << " replicas were not refused";
    } catch (const FailedPrecondition& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("sync_batch_norm"));
    }
  }
}

// 22 images in steps of two batches of 4: the last batch has two, and would not take part in the exchange, or
// with other numbers.
TEST_F(SyncBatchNorm, SumsThatDependOnTheSizeOfTheBatchAreRefused) {
  const auto message = [&](const std::function<Tensor(const Tensor&)>& summed) {
    return message_of<FailedPrecondition>([&] {
      train(2, {"--sync_batch_norm=true"}, 1, [&](const Inputs& in, ModeKeys mode) -> ModelSpec {
        ModelSpec spec = network(in, mode);
        spec.loss = spec.loss + reduce_mean(summed(in[0])) * 0.0f;
        spec.log_info = {{"loss", spec.loss}};
        return spec;
      });
    });
  };
  EXPECT_THAT(message([](const Tensor& x) { return replica_sum(x); }),
              testing::AllOf(testing::HasSubstr("replica_sum"), testing::HasSubstr("[4, 3, 4, 4]"),
                             testing::HasSubstr("[2, 3, 4, 4]")));
  EXPECT_THAT(message([](const Tensor& x) { return x.shape()[0] == 4 ? replica_sum(reduce_mean(x)) : x; }),
              testing::HasSubstr("sum 5 is of float32[] at layers"));
}

}  // namespace
}  // namespace mox
