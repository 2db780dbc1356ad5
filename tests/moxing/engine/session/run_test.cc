// mox::run as a program sees it, on a model small enough to check by hand.
#include "moxing/engine/session/run.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>

#include "moxing/checkpoint/checkpoint.h"
#include "moxing/config/init.h"
#include "moxing/hooks/hooks.h"
#include "moxing/model/variables.h"
#include "ops/ops.h"
#include "runtime/base/error.h"
#include "runtime/base/random.h"
#include "tests/moxing/small_run.h"

namespace mox {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kSamples = 50;

// y = 2 x0 - x1 + 0.5, exactly.
std::vector<Array> line_data(int64_t samples = kSamples) {
  Array x(DType::kFloat32, {samples, 2}), y(DType::kFloat32, {samples, 1});
  RandomStream(3, 4).fill_uniform(x.values<float>(), 0, -1, 1);
  for (int64_t i = 0; i < samples; ++i) {
    const auto row = x.values<float>().subspan(static_cast<size_t>(2 * i), 2);
    y.values<float>()[i] = 2 * row[0] - row[1] + 0.5f;
  }
  return {x, y};
}

ModelSpec line_model(const Inputs& in, ModeKeys mode) {
  auto [x, y] = in.take<2>();
  auto prediction =
      matmul(x, get_variable("w", {2, 1}, random_normal_initializer(0, 1))) + get_variable("b", {1}, zeros());
  auto loss = reduce_mean(square(prediction - y));
  // Noise that depends on the step: a resumed run is only equal if the step's random numbers are.
  auto noise = random_uniform({1}, {.low = -0.001, .high = 0.001});
  return {
      .loss = mode == ModeKeys::TRAIN ? loss + reduce_sum(noise * get_variable("b2", {1}, zeros())) : loss,
      .log_info = {{"loss", loss}},
      .output_info = {{"prediction", prediction}}};
}

class RunTest : public ::testing::Test {
 protected:
  RunTest() : log_dir_(fresh_directory("run")) {}

  RunSpec spec() const { return momentum_run(line_data(), line_model, log_dir_); }

  ScopedConfiguration configuration_{std::vector<std::string>{"--threads=1", "--log_level=error"}};
  std::string log_dir_;
};

TEST_F(RunTest, LearnsTheLine) {
  auto s = spec();
  s.inter_mode = ModeKeys::EVAL;
  s.max_number_of_steps = 300;
  const RunResult result = run_or_throw(s);
  EXPECT_EQ(result.global_step, 300);
  EXPECT_EQ(result.evaluation.at(0).first, "loss");
  EXPECT_LT(result.evaluation.at(0).second, 1e-4);
  const Checkpoint saved = load_checkpoint(log_dir_);
  EXPECT_EQ(saved.global_step, 300);
  EXPECT_EQ(saved.variables[0].name, "b");
  EXPECT_NEAR(saved.variables[0].value.item(), 0.5, 0.02);
}

TEST_F(RunTest, TheSameRunTwiceAndAResumedOneAreBitwiseEqual) {
  run_or_throw(spec());
  const std::string whole = checkpoint_digest(log_dir_);
  auto again = spec();
  again.log_dir = fresh_directory("run_again");
  run_or_throw(again);
  EXPECT_EQ(checkpoint_digest(*again.log_dir), whole);

  auto pieces = spec();
  pieces.log_dir = fresh_directory("run_pieces");
  for (int64_t last : {1, 3, 11, 12, 30}) {  // an epoch has 6.25 batches: these stop in the middle of some
    pieces.max_number_of_steps = last;
    EXPECT_EQ(run_or_throw(pieces).global_step, last);
  }
  EXPECT_EQ(checkpoint_digest(*pieces.log_dir), whole);

  auto other_seed = spec();
  other_seed.log_dir = fresh_directory("run_seed");
  other_seed.seed = 2;
  run_or_throw(other_seed);
  EXPECT_NE(checkpoint_digest(*other_seed.log_dir), whole);
}

TEST_F(RunTest, TheNumberOfThreadsDoesNotChangeTheBits) {
  run_or_throw(spec());
  for (const char* threads : {"--data_threads=1", "--data_threads=4"}) {
    ScopedConfiguration configuration(std::vector<std::string>{"--threads=1", "--log_level=error", threads});
    auto s = spec();
    s.log_dir = fresh_directory("run_threads");
    run_or_throw(s);
    EXPECT_EQ(checkpoint_digest(*s.log_dir), checkpoint_digest(log_dir_)) << threads;
  }
}

TEST_F(RunTest, CountsEverySampleOfASmallerLastBatchOnce) {
  auto s = spec();
  s.inter_mode = ModeKeys::EVAL;
  s.eval_batch_size = 7;  // 50 = 7 * 7 + 1
  const double in_sevens = run_or_throw(s).evaluation.at(0).second;
  auto whole = s;
  whole.eval_batch_size = kSamples;  // finished already: evaluates only
  EXPECT_NEAR(run_or_throw(whole).evaluation.at(0).second, in_sevens, 1e-7);
}

TEST_F(RunTest, TrainsOnASmallerLastBatchToo) {
  auto s = spec();
  s.input_fn = [](ModeKeys) { return Dataset::from_arrays(line_data(10)); };
  std::vector<int64_t> sizes;
  struct Sizes : Hook {
    explicit Sizes(std::vector<int64_t>& sizes) : sizes(sizes) {}
    void after_run(Session&, const StepResult& result) override { sizes.push_back(result.samples()); }
    std::vector<int64_t>& sizes;
  };
  s.hooks = {std::make_shared<Sizes>(sizes)};
  const RunResult result = run_or_throw(s);
  EXPECT_THAT(sizes, ElementsAre(8, 2));
  EXPECT_THAT(result.stop_reason, HasSubstr("ended"));
}

TEST_F(RunTest, MaxEpochsCountsPasses) {
  auto s = spec();
  s.max_number_of_steps = std::nullopt;
  s.max_epochs = 2;
  EXPECT_EQ(run_or_throw(s).global_step, 13);  // 100 samples in batches of 8
}

TEST_F(RunTest, AFinishedLogDirIsSaidAndNotTrained) {
  run_or_throw(spec());
  const std::string before = checkpoint_digest(log_dir_);
  ::testing::internal::CaptureStdout();
  {
    ScopedConfiguration configuration(std::vector<std::string>{"--threads=1", "--log_level=error"});
    const RunResult result = run_or_throw(spec());
    EXPECT_EQ(result.stop_reason, "finished already");
  }
  EXPECT_THAT(::testing::internal::GetCapturedStdout(),
              HasSubstr("already holds step 30 and the run ends at step 30"));
  EXPECT_EQ(checkpoint_digest(log_dir_), before);
}

TEST_F(RunTest, CheckpointPathGivesTheVariablesOnly) {
  run_or_throw(spec());
  auto warm = spec();
  warm.log_dir = fresh_directory("run_warm");
  warm.checkpoint_path = log_dir_;
  warm.max_number_of_steps = 1;
  EXPECT_EQ(run_or_throw(warm).global_step, 1);
  // A checkpoint in log_dir wins over checkpoint_path.
  warm.max_number_of_steps = 2;
  warm.checkpoint_path = "/nowhere/at/all";
  EXPECT_EQ(run_or_throw(warm).global_step, 2);
}

TEST_F(RunTest, EvaluatesAndPredictsFromACheckpoint) {
  auto s = spec();
  s.max_number_of_steps = 300;
  run_or_throw(s);
  s.run_mode = ModeKeys::EVAL;
  EXPECT_LT(run_or_throw(s).evaluation.at(0).second, 1e-4);
  s.run_mode = ModeKeys::PREDICT;
  s.output_every_n_steps = 3;
  std::vector<float> predictions;
  std::vector<size_t> calls;
  s.output_fn = [&](std::span<const OutputBatch> batches) {
    calls.push_back(batches.size());
    for (const OutputBatch& batch : batches)
      for (float value : batch.at(0).second.values<float>()) predictions.push_back(value);
  };
  run_or_throw(s);
  EXPECT_THAT(calls, ElementsAre(3, 3, 1));  // seven batches
  ASSERT_EQ(predictions.size(), static_cast<size_t>(kSamples));
  const Array labels = line_data()[1];
  const auto truth = labels.values<float>();
  for (size_t i = 0; i < predictions.size(); ++i) EXPECT_NEAR(predictions[i], truth[i], 0.05);
}

TEST_F(RunTest, EvaluationAndPredictionRefuseWithoutACheckpoint) {
  auto s = spec();
  s.run_mode = ModeKeys::EVAL;
  EXPECT_THAT(message_of_run<ConfigError>(s), HasSubstr("--checkpoint_path"));
  EXPECT_EQ(run(s), 2);
  s.run_mode = ModeKeys::PREDICT;
  EXPECT_THAT(message_of_run<InvalidArgument>(s), HasSubstr("there is no output_fn"));
  s.output_fn = [](std::span<const OutputBatch>) {};
  message_of_run<ConfigError>(s);
}

TEST_F(RunTest, EvaluatesOneEpochOfDataThatRepeats) {
  auto s = spec();
  s.inter_mode = ModeKeys::EVAL;
  s.input_fn = [](ModeKeys) { return Dataset::from_arrays(line_data()).shuffle(kSamples).repeat(); };
  auto once = spec();
  once.inter_mode = ModeKeys::EVAL;
  once.log_dir = fresh_directory("run_once");
  EXPECT_NEAR(run_or_throw(s).evaluation.at(0).second, run_or_throw(once).evaluation.at(0).second, 1e-6);
}

TEST_F(RunTest, ANanLossEndsTheRunAndKeepsTheLastGoodCheckpoint) {
  auto s = spec();
  s.save_model_steps = 5;
  s.input_fn = [](ModeKeys) {
    auto data = line_data(80);
    data[0].values<float>()[2 * 8 * 7] = std::numeric_limits<float>::quiet_NaN();  // in the eighth batch
    return Dataset::from_arrays(data);
  };
  EXPECT_THAT(message_of_run<NumericError>(s), HasSubstr("nan at global step 8"));
  const Checkpoint saved = load_checkpoint(log_dir_);
  EXPECT_EQ(saved.global_step, 5);
  for (const NamedArray& variable : saved.variables)
    for (float value : variable.value.values<float>()) EXPECT_TRUE(std::isfinite(value));
}

TEST_F(RunTest, RefusesATrainingWithoutAnEnd) {
  auto s = spec();
  s.max_number_of_steps = std::nullopt;
  EXPECT_THAT(message_of_run<ConfigError>(s), HasSubstr("max_number_of_steps or max_epochs"));
}

TEST_F(RunTest, RefusesWhatAModelMustNotReturn) {
  auto s = spec();
  s.model_fn = [](const Inputs& in, ModeKeys) { return ModelSpec{.log_info = {{"x", reduce_mean(in[0])}}}; };
  EXPECT_THAT(message_of_run<InvalidArgument>(s), HasSubstr("no loss"));
  s.model_fn = [](const Inputs& in, ModeKeys) { return ModelSpec{.loss = reduce_mean(in[0])}; };
  EXPECT_THAT(message_of_run<InvalidArgument>(s), HasSubstr("nothing to train"));
  s.model_fn = [](const Inputs& in, ModeKeys) { return ModelSpec{.loss = in[0] * get_variable("w", {2})}; };
  EXPECT_THAT(message_of_run<InvalidArgument>(s), HasSubstr("a loss is one floating-point number"));
  s.model_fn = [](const Inputs& in, ModeKeys mode) {
    auto spec = line_model(in, mode);
    spec.log_info.emplace_back("rows", in[0]);
    return spec;
  };
  EXPECT_THAT(message_of_run<InvalidArgument>(s), HasSubstr("log_info 'rows' must be one number"));
  s.model_fn = [](const Inputs& in, ModeKeys) { return ModelSpec{.loss = in.take<3>()[2]}; };
  EXPECT_THAT(message_of_run<InvalidArgument>(s),
              HasSubstr("has 2 component(s): float32[8, 2], float32[8, 1]"));
}

// Clipping the weights so, for instance, gives them the clipped values of before the step, whatever the
// gradient was.
TEST_F(RunTest, RefusesAnUpdateAfterTheStepOfWhatTheOptimizerTrains) {
  auto s = spec();
  s.model_fn = [](const Inputs& in, ModeKeys mode) {
    const Tensor w = get_variable("clipped", {1}, zeros());
    ModelSpec model = line_model(in, mode);
    model.loss = model.loss + reduce_sum(w);
    update_after_step(w, clip_by_value(w, -0.01, 0.01));
    return model;
  };
  EXPECT_THAT(message_of_run<InvalidArgument>(s),
              AllOf(HasSubstr("'clipped'"), HasSubstr("clip_by_value"), HasSubstr("run_test.cc"),
                    HasSubstr("trainable = false")));
}

TEST_F(RunTest, RefusesNamesThatMetricsJsonlHasAlready) {
  for (const std::string name : {"step", "samples", "samples_per_second", "learning_rate", "evaluation"}) {
    auto s = spec();
    s.model_fn = [&](const Inputs& in, ModeKeys mode) {
      ModelSpec model = line_model(in, mode);
      model.log_info.emplace_back(name, model.loss);
      return model;
    };
    EXPECT_THAT(message_of_run<InvalidArgument>(s),
                AllOf(HasSubstr("'" + name + "'"), HasSubstr("metrics.jsonl")));
  }
}

TEST_F(RunTest, RefusesOutputsThatAreNotOneRowASample) {
  using Output = std::function<Tensor(const Inputs&)>;
  const std::vector<Output> wrong = {
      [](const Inputs& in) { return reduce_mean(in[0]); },                 // no rows
      [](const Inputs& in) { return reduce_mean(in[0], {.axes = {0}}); },  // a row a column
      [](const Inputs&) { return Tensor(); }};
  for (const ModeKeys mode : {ModeKeys::TRAIN, ModeKeys::PREDICT})
    for (const Output& output : wrong) {
      auto s = spec();
      s.max_number_of_steps = 1;
      run_or_throw(s);
      s.max_number_of_steps = 2;
      s.run_mode = mode;
      s.output_fn = [](std::span<const OutputBatch>) {};
      s.model_fn = [&](const Inputs& in, ModeKeys m) {
        ModelSpec model = line_model(in, m);
        model.output_info.emplace_back("wrong", output(in));
        return model;
      };
      EXPECT_THAT(message_of_run<InvalidArgument>(s),
                  AllOf(HasSubstr("'wrong'"), HasSubstr("one row a sample")));
    }
}

TEST_F(RunTest, AModelThatChangedIsRefusedWithTheNames) {
  run_or_throw(spec());
  auto s = spec();
  s.max_number_of_steps = 40;
  s.model_fn = [](const Inputs& in, ModeKeys) {
    auto [x, y] = in.take<2>();
    auto loss = reduce_mean(square(matmul(x, get_variable("weights", {2, 1})) - y));
    return ModelSpec{.loss = loss, .log_info = {{"loss", loss}}};
  };
  EXPECT_THAT(message_of_run<NotFound>(s),
              HasSubstr("no value for 1 of the model's 1 variables: weights (made at "));
  s.model_fn = [](const Inputs& in, ModeKeys) {
    auto [x, y] = in.take<2>();
    auto w = get_variable("w", {2, 3});
    auto loss = reduce_mean(square(matmul(x, w) - y)) + reduce_sum(get_variable("b", {1})) +
                reduce_sum(get_variable("b2", {1}));
    return ModelSpec{.loss = loss, .log_info = {{"loss", loss}}};
  };
  EXPECT_THAT(message_of_run<InvalidArgument>(s), HasSubstr("[2, 1]"));
}

TEST_F(RunTest, OnlyTheVariablesInVarScopesAreTrained) {
  auto s = spec();
  s.model_fn = [](const Inputs& in, ModeKeys) {
    auto [x, y] = in.take<2>();
    Tensor hidden, out;
    {
      auto scope = var_scope("frozen");
      hidden = matmul(x, get_variable("w", {2, 2}, ones()));
    }
    {
      auto scope = var_scope("trained");
      out = matmul(hidden, get_variable("w", {2, 1}, ones()));
    }
    auto loss = reduce_mean(square(out - y));
    return ModelSpec{.loss = loss, .var_scopes = {"trained"}, .log_info = {{"loss", loss}}};
  };
  run_or_throw(s);
  const Checkpoint saved = load_checkpoint(log_dir_);
  for (const NamedArray& variable : saved.variables) {
    const bool unchanged = variable.value.values<float>()[0] == 1;
    EXPECT_EQ(unchanged, variable.name == "frozen/w") << variable.name;
  }
  for (const NamedArray& slot : saved.optimizer_slots)
    EXPECT_TRUE(slot.name.starts_with("trained/")) << slot.name;
}

TEST_F(RunTest, RegularizersJoinTheTrainedLoss) {
  auto s = spec();
  s.model_fn = [](const Inputs& in, ModeKeys) {
    auto [x, y] = in.take<2>();
    get_variable("unused", {2}, ones(), {.regularizer = l2_regularizer(1.0f)});
    auto loss = reduce_mean(square(matmul(x, get_variable("w", {2, 1})) - y));
    return ModelSpec{.loss = loss, .log_info = {{"loss", loss}}};
  };
  s.optimizer_fn = get_optimizer_fn("sgd", {.learning_rate = 0.1});
  s.max_number_of_steps = 1;
  run_or_throw(s);
  for (const NamedArray& variable : load_checkpoint(log_dir_).variables) {
    if (variable.name == "unused") {
      EXPECT_FLOAT_EQ(variable.value.values<float>()[0], 0.9f);  // 1 - 0.1 * d(v^2 / 2)
    }
  }
}

TEST_F(RunTest, RunReportsAnErrorInOneParagraphAndReturnsItsStatus) {
  auto s = spec();
  s.input_fn = [](ModeKeys) -> Dataset { throw NotFound("no file 'x'"); };
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run(s), 2);  // a value that is refused
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "error: no file 'x'\n");
  s.input_fn = [](ModeKeys) -> Dataset { throw IoError("a disk that does not answer"); };
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run(s), 1);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "error: a disk that does not answer\n");
}

TEST_F(RunTest, AnExceptionFromTheDataEndsTheRunWithoutSavingOverTheLastCheckpoint) {
  auto s = spec();
  s.save_model_steps = 2;
  s.input_fn = [](ModeKeys) {
    return Dataset::from_arrays(line_data()).map([](const Element& element) {
      if (element[0].values<float>()[0] == line_data()[0].values<float>()[2 * 20])
        throw DataError("bad sample");
      return element;
    });
  };
  EXPECT_THAT(message_of_run<DataError>(s), HasSubstr("bad sample"));
  EXPECT_EQ(load_checkpoint(log_dir_).global_step, 2);
}

}  // namespace
}  // namespace mox
