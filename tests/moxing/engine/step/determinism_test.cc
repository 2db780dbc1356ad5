// What is promised about bits: docs/determinism.md.
#include <gmock/gmock-more-matchers.h>

#include "moxing/layers/layers.h"
#include "runtime/base/random.h"
#include "tests/moxing/small_run.h"

namespace mox {
namespace {

// Images of noise with labels that depend on their brightness.
Dataset noise_images(ModeKeys mode) {
  constexpr int64_t kSamples = 40;
  Array images(DType::kFloat32, {kSamples, 1, 12, 12}), labels(DType::kInt64, {kSamples});
  RandomStream(5, 6).fill_uniform(images.values<float>(), 0, -1, 1);
  for (int64_t i = 0; i < kSamples; ++i) labels.values<int64_t>()[i] = i % 3;
  auto data = Dataset::from_arrays({images, labels});
  return mode == ModeKeys::TRAIN ? data.shuffle(kSamples).repeat() : data;
}

ModelSpec convolutions(const Inputs& in, ModeKeys mode) {
  auto [x, y] = in.take<2>();
  Tensor h = layers::conv2d(x, 16, {5, 5}, {.use_bias = false});
  h = layers::batch_norm(h, mode, {.activation = relu});
  h = max_pool(h, {.window = {2, 2}, .strides = {2, 2}});
  h = layers::conv2d(h, 24, {3, 3}, {.activation = relu});
  h = layers::dropout(flatten(h), 0.3f, mode);
  const Tensor logits = layers::dense(layers::dense(h, 32, {.activation = relu}), 3);
  const Tensor loss = reduce_mean(sparse_softmax_cross_entropy(logits, y));
  return {.loss = loss, .log_info = {{"loss", loss}, {"accuracy", accuracy(logits, y)}}};
}

// Of products with few columns alone, which are our own kernels'.
ModelSpec narrow_layers(const Inputs& in, ModeKeys) {
  auto [x, y] = in.take<2>();
  const Tensor h = layers::dense(flatten(x), 10, {.activation = relu});
  const Tensor loss = reduce_mean(sparse_softmax_cross_entropy(layers::dense(h, 3), y));
  return {.loss = loss, .log_info = {{"loss", loss}}};
}

// Trains 20 steps (in log_dir, if it is given) and returns the digest of the checkpoint.
std::string digest(const std::vector<std::string>& flags, const ModelFn& model_fn = convolutions,
                   int64_t steps = 20, std::string log_dir = "") {
  if (log_dir.empty()) log_dir = fresh_directory("determinism");
  std::vector<std::string> arguments{"--log_level=error", "--log_every_n_steps=0", "--log_dir", log_dir};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  const ScopedConfiguration configuration(arguments);
  run_or_throw({.input_fn = noise_images,
                .model_fn = model_fn,
                .optimizer_fn = get_optimizer_fn("momentum", {.learning_rate = 0.05}),
                .batch_size = 16,  // 40 samples: batches cross the borders of epochs
                .max_number_of_steps = steps});
  return checkpoint_digest(log_dir);
}

TEST(DeterminismTest, TheSameSeedAndThreadsGiveTheSameBits) {
  for (const char* threads : {"--threads=1", "--threads=2"})
    EXPECT_EQ(digest({threads}), digest({threads})) << threads;
}

TEST(DeterminismTest, AnotherSeedGivesOtherBits) {
  EXPECT_NE(digest({"--threads=1"}), digest({"--threads=1", "--seed=2"}));
}

TEST(DeterminismTest, TheDataPipelineDoesNotChangeTheBits) {
  const std::string expected = digest({"--threads=1", "--data_threads=1"});
  EXPECT_EQ(digest({"--threads=1", "--data_threads=3", "--prefetch_batches=7"}), expected);
}

TEST(DeterminismTest, APlanWithoutMarksGivesTheSameBitsWithAnyNumberOfThreads) {
  testing::internal::CaptureStderr();
  const std::string expected = digest({"--threads=1", "--log_level=info"}, narrow_layers);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("threads is free"));
  for (const char* threads : {"--threads=2", "--threads=3", "--threads=9"})
    EXPECT_EQ(digest({threads}, narrow_layers), expected) << threads;
}

TEST(DeterminismTest, ThreadsAreNotSaidToBeFreeWhereAnInstructionDependsOnThem) {
  testing::internal::CaptureStderr();
  digest({"--threads=1", "--log_level=info"});
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::Not(testing::HasSubstr("threads is free")));
}

TEST(DeterminismTest, AnotherNumberOfThreadsIsNoWarningWhereItChangesNoBit) {
  const std::string log_dir = fresh_directory("determinism_continued");
  digest({"--threads=1"}, narrow_layers, 10, log_dir);
  testing::internal::CaptureStderr();
  const std::string continued = digest({"--threads=2", "--log_level=info"}, narrow_layers, 20, log_dir);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::Not(testing::HasSubstr("uninterrupted")));
  EXPECT_EQ(continued, digest({"--threads=1"}, narrow_layers));
}

}  // namespace
}  // namespace mox
