#include "moxing/engine/session/predictor.h"

#include <gmock/gmock.h>

#include <cstring>
#include <limits>
#include <thread>

#include "moxing/layers/layers.h"
#include "ops/fusion/default_rules.h"
#include "runtime/base/error.h"
#include "tests/moxing/small_run.h"

namespace mox {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class PredictorTest : public SmallRun {
 protected:
  static constexpr int64_t kSamples = 50;

  static Array images() {
    Array x(DType::kFloat32, {kSamples, 1, 8, 8});
    for (size_t i = 0; i < x.values<float>().size(); ++i)
      x.values<float>()[i] = static_cast<float>(i * 37 % 101) / 101.0F;
    return x;
  }
  static ModelSpec model(const Inputs& in, ModeKeys mode) {
    Tensor x = layers::conv2d(in[0], 4, {3, 3}, {.name = "conv"});
    x = relu(layers::batch_norm(x, mode));
    const Tensor logits = layers::dense(flatten(x), 10, {.name = "logits"});
    const Tensor loss = reduce_mean(square(logits));
    if (mode == ModeKeys::PREDICT)
      return {.output_info = {{"class", argmax(logits)}, {"probabilities", softmax(logits)}}};
    return {.loss = loss, .log_info = {{"loss", loss}}};
  }
  // Its convolution takes Winograd's method, in batches of 16 and more.
  static ModelSpec wide_model(const Inputs& in, ModeKeys mode) {
    Tensor x = layers::conv2d(in[0], 16, {3, 3}, {.name = "first"});
    x = relu(layers::batch_norm(x, mode));
    x = layers::conv2d(x, 16, {3, 3}, {.name = "second"});
    return {.loss = reduce_mean(square(x)), .output_info = {{"probabilities", flatten(x)}}};
  }
  RunSpec trained(const ModelFn& model_fn = model) {
    auto s = spec();
    s.model_fn = model_fn;
    s.input_fn = [](ModeKeys mode) {
      auto data = Dataset::from_arrays({images()});
      return mode == ModeKeys::TRAIN ? data.repeat() : data;
    };
    s.optimizer_fn = get_optimizer_fn("sgd", {.learning_rate = 0.1});
    run_or_throw(s);
    return s;
  }
  // What run_mode predict gives, all rows of "probabilities".
  static std::vector<float> of_run(RunSpec s, int64_t batch) {
    std::vector<float> all;
    s.run_mode = ModeKeys::PREDICT;
    s.batch_size = batch;
    s.output_fn = [&](std::span<const OutputBatch> batches) {
      for (const OutputBatch& of_batch : batches) {
        const auto values = of_batch.array("probabilities").values<float>();
        all.insert(all.end(), values.begin(), values.end());
      }
    };
    run_or_throw(s);
    return all;
  }
  static std::vector<float> of_predictor(const Predictor& predictor, int64_t batch) {
    std::vector<float> all;
    const Array x = images();
    for (int64_t begin = 0; begin < kSamples; begin += batch) {
      const std::vector<Array> components = {x.rows(begin, std::min(kSamples, begin + batch))};
      const OutputBatch answer = predictor.predict(components);
      const auto values = answer.array("probabilities").values<float>();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }
  static bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
  }
};

TEST_F(PredictorTest, HasTheBitsOfRunModePredict) {
  const RunSpec s = trained();
  const Predictor predictor(log_dir_, model);
  EXPECT_EQ(predictor.global_step(), 4);
  EXPECT_THAT(predictor.checkpoint(), HasSubstr("checkpoint-4"));
  for (const int64_t batch : {1, 7, 16, 50}) {
    const auto expected = of_run(s, batch);
    ASSERT_EQ(expected.size(), static_cast<size_t>(10 * kSamples));
    EXPECT_TRUE(same_bits(of_predictor(predictor, batch), expected)) << "batches of " << batch;
  }
}

// Whatever decides the last bits of a run does so here, too.
TEST_F(PredictorTest, ComputesAsTheOptionsOfARunSay) {
  EXPECT_EQ(PredictorOptions{}.conv_error, kStatedConvolutionError);
  const RunSpec s = trained(wide_model);
  const auto usual = of_run(s, 50);
  ASSERT_TRUE(same_bits(of_predictor(Predictor(log_dir_, wide_model), 50), usual));
  struct Case {
    const char* flag;
    PredictorOptions options;
    bool has_other_bits = true;
  };
  for (const Case& c :
       {Case{"--conv_algorithm=direct", {.conv_algorithm = "direct"}},
        Case{"--conv_error=1e-9", {.conv_error = 1e-9}},
        Case{"--precision=bf16", {.precision = "bf16"}, bfloat16_support() != BFloat16Support::kNone},
        Case{"--recompute=normalisation", {}, false}}) {
    const ScopedConfiguration configuration({"--threads=1", "--log_level=error", c.flag});
    const auto expected = of_run(s, 50);
    EXPECT_EQ(same_bits(expected, usual), !c.has_other_bits) << c.flag;
    EXPECT_TRUE(same_bits(of_predictor(Predictor(log_dir_, wide_model, c.options), 50), expected)) << c.flag;
  }
}

TEST_F(PredictorTest, AnswersSeveralThreadsAtATime) {
  trained();
  const Predictor predictor(log_dir_, model, {.kept_batch_sizes = 2});  // fewer than are in use
  std::vector<std::vector<float>> expected;
  const std::vector<int64_t> sizes = {1, 3, 8, 50};
  for (const int64_t size : sizes) expected.push_back(of_predictor(predictor, size));
  std::vector<std::thread> threads;
  std::vector<int> wrong(8);
  for (size_t t = 0; t < wrong.size(); ++t)
    threads.emplace_back([&, t] {
      for (int repetition = 0; repetition < 3; ++repetition)
        if (!same_bits(of_predictor(predictor, sizes[t % sizes.size()]), expected[t % sizes.size()]))
          ++wrong[t];
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(8));
}

TEST_F(PredictorTest, TakesOneCheckpointOfSeveral) {
  auto s = trained();
  s.max_number_of_steps = 6;
  run_or_throw(s);
  EXPECT_EQ(Predictor(log_dir_, model).global_step(), 6);
  const Predictor earlier(log_dir_ + "/checkpoint-4", model);
  EXPECT_EQ(earlier.global_step(), 4);
  EXPECT_FALSE(same_bits(of_predictor(earlier, 50), of_predictor(Predictor(log_dir_, model), 50)));
}

TEST_F(PredictorTest, SaysWhatItCannotUse) {
  trained();
  EXPECT_THROW(Predictor(log_dir_ + "/nowhere", model), NotFound);
  EXPECT_THROW(Predictor(log_dir_, nullptr), InvalidArgument);
  EXPECT_THROW(Predictor(log_dir_, model, {.threads = 0}), InvalidArgument);
  EXPECT_THAT(message_of<InvalidArgument>([&] { Predictor(log_dir_, model, {.precision = "half"}); }),
              HasSubstr("fp32 or bf16, got 'half'"));
  EXPECT_THAT(message_of<InvalidArgument>([&] { Predictor(log_dir_, model, {.conv_algorithm = "fast"}); }),
              HasSubstr("auto or direct or measured, got 'fast'"));
  for (const double error : {-1e-9, 0.02, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_THAT(message_of<InvalidArgument>([&] { Predictor(log_dir_, model, {.conv_error = error}); }),
                HasSubstr("from 0 to 0.01, got "));
  const Predictor predictor(log_dir_, model);
  const auto refusal = [&](const std::vector<Array>& components) {
    return message_of<InvalidArgument>([&] { predictor.predict(components); });
  };
  EXPECT_THAT(refusal({}), HasSubstr("at least one component"));
  EXPECT_THAT(refusal({Array::scalar(1.0F)}), HasSubstr("number of samples"));
  EXPECT_THAT(refusal({Array(DType::kFloat32, {0, 1, 8, 8})}), HasSubstr("at least 1"));
  EXPECT_THAT(refusal({Array(DType::kFloat32, {2, 1, 8, 8}), Array(DType::kFloat32, {3})}),
              HasSubstr("the same"));
  const Predictor other(log_dir_, [](const Inputs& in, ModeKeys) {
    return ModelSpec{.output_info = {{"y", layers::dense(flatten(in[0]), 3, {.name = "other"})}}};
  });
  EXPECT_THAT(message_of<NotFound>([&] { other.predict(std::vector<Array>{images()}); }),
              AllOf(HasSubstr("other"), HasSubstr("checkpoint-4")));
  const Predictor silent(log_dir_, [](const Inputs&, ModeKeys) { return ModelSpec{}; });
  EXPECT_THROW(silent.predict(std::vector<Array>{images()}), InvalidArgument);
}

TEST_F(PredictorTest, IsMovedAndPrepared) {
  trained();
  Predictor first(log_dir_, model);
  first.prepare({{DType::kFloat32, {1, 1, 8, 8}}});
  Predictor second = std::move(first);
  EXPECT_EQ(of_predictor(second, 1).size(), static_cast<size_t>(10 * kSamples));
}

}  // namespace
}  // namespace mox
