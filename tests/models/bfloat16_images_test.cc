// Runs with `precision: bf16` whose images are made in bfloat16 are, bit for bit, those whose plan casts
// float32 images.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "models/zoo/zoo.h"
#include "moxing/checkpoint/checkpoint.h"
#include "moxing/config/init.h"
#include "moxing/engine/session/run.h"
#include "ops/fusion/default_rules.h"
#include "tests/support/temporary_directory.h"

namespace mox {
namespace {

struct RunOutcome {
  std::vector<NamedArray> arrays;  // variables and slots after the training
  Metrics evaluation;
  std::vector<Array> logits;  // predicted for the test split
};

class BFloat16ImageRun : public testing::TestWithParam<const char*> {
 protected:
  BFloat16ImageRun() {
    int seed = 0;
    for (const char* split :
         {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"}) {
      std::string records;
      seed += 40;
      for (int i = 0; i < 10; ++i) {
        records += static_cast<char>(i % 10);
        for (int at = 0; at < 3072; ++at)
          records += static_cast<char>((i * 25 + at * (i + 3) / 7 + seed) % 256);
      }
      directory_.write(std::string(split) + ".bin", records);
    }
  }

  Dataset images(ModeKeys mode, DType dtype) const {
    const bool training = mode == ModeKeys::TRAIN;
    const Dataset samples =
        data::cifar10(directory_.path(), training ? "train" : "test",
                      {.augmentation = get_data_augmentation_fn(GetParam(), mode, 32, 32), .dtype = dtype});
    return training ? samples.shuffle(samples.cardinality()).repeat() : samples;
  }

  RunOutcome outcome(DType dtype, const std::string& log_dir) const {
    RunOutcome result;
    RunSpec spec{.input_fn = [&](ModeKeys mode) { return images(mode, dtype); },
                 .model_fn =
                     [](const Inputs& in, ModeKeys mode) {
                       const auto [pixels, labels] = in.take<2>();
                       const Tensor logits =
                           get_model_fn(GetParam(), {.num_classes = 10})(pixels, mode).logits;
                       const Tensor loss = reduce_mean(sparse_softmax_cross_entropy(logits, labels));
                       return ModelSpec{
                           .loss = loss, .log_info = {{"loss", loss}}, .output_info = {{"logits", logits}}};
                     },
                 .optimizer_fn = get_optimizer_fn("momentum", {.learning_rate = 0.01, .momentum = 0.9}),
                 .output_fn = nullptr,
                 .run_mode = ModeKeys::TRAIN,
                 .inter_mode = ModeKeys::EVAL,
                 .batch_size = 8,
                 .eval_batch_size = 4,  // the last batch is smaller
                 .log_dir = log_dir,
                 .max_number_of_steps = 8,
                 .log_every_n_steps = 0};
    result.evaluation = run_or_throw(spec).evaluation;
    const Checkpoint checkpoint = load_checkpoint(log_dir);
    result.arrays = checkpoint.variables;
    result.arrays.insert(result.arrays.end(), checkpoint.optimizer_slots.begin(),
                         checkpoint.optimizer_slots.end());
    spec.run_mode = ModeKeys::PREDICT;
    spec.inter_mode = {};
    spec.optimizer_fn = {};
    spec.output_fn = [&](std::span<const OutputBatch> batches) {
      for (const OutputBatch& batch : batches)
        for (const auto& [name, array] : batch) result.logits.push_back(array);
    };
    run_or_throw(spec);
    return result;
  }

  static bool same_bits(const Array& a, const Array& b) {
    return a.type() == b.type() && std::ranges::equal(a.as_bytes(), b.as_bytes());
  }

  TemporaryDirectory directory_;
};

TEST_P(BFloat16ImageRun, IsThatOfImagesThatThePlanCasts) {
  if (bfloat16_support() == BFloat16Support::kNone) GTEST_SKIP() << "needs AVX-512, for bfloat16";
  const ScopedConfiguration configuration(
      std::vector<std::string>{"--threads=2", "--log_level=error", "--precision=bf16"});
  const RunOutcome cast = outcome(DType::kFloat32, directory_.file("cast"));
  const RunOutcome direct = outcome(DType::kBFloat16, directory_.file("direct"));
  ASSERT_EQ(direct.arrays.size(), cast.arrays.size());
  for (size_t i = 0; i < cast.arrays.size(); ++i) {
    EXPECT_EQ(direct.arrays[i].name, cast.arrays[i].name);
    EXPECT_TRUE(same_bits(direct.arrays[i].value, cast.arrays[i].value)) << cast.arrays[i].name;
  }
  EXPECT_EQ(direct.evaluation, cast.evaluation);
  ASSERT_EQ(direct.logits.size(), 3u);
  ASSERT_EQ(cast.logits.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(same_bits(direct.logits[i], cast.logits[i])) << i;
}

// Of a run in float32: the layers widen such images.
TEST_P(BFloat16ImageRun, TakesThemInFloat32AsWell) {
  const ScopedConfiguration configuration(std::vector<std::string>{"--threads=2", "--log_level=error"});
  const RunOutcome exact = outcome(DType::kFloat32, directory_.file("exact"));
  const RunOutcome rounded = outcome(DType::kBFloat16, directory_.file("rounded"));
  ASSERT_EQ(rounded.logits.size(), exact.logits.size());
  EXPECT_FALSE(same_bits(rounded.logits[0], exact.logits[0]));
}

INSTANTIATE_TEST_SUITE_P(Networks, BFloat16ImageRun, testing::Values("cifarnet", "resnet_v1_20"),
                         [](const auto& network) { return std::string(network.param); });

TEST(PreferredImageDtype, IsThatOfThePrecision) {
  const auto preferred = [](const std::string& precision) {
    const ScopedConfiguration configuration(std::vector<std::string>{"--precision=" + precision});
    return preferred_image_dtype();
  };
  EXPECT_EQ(preferred("fp32"), DType::kFloat32);
  EXPECT_EQ(preferred("bf16"),
            bfloat16_support() == BFloat16Support::kNone ? DType::kFloat32 : DType::kBFloat16);
}

}  // namespace
}  // namespace mox
