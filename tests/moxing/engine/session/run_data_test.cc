// Runs on data of awkward sizes and kinds.
#include <gmock/gmock-more-matchers.h>

#include <cmath>

#include "moxing/formats/npy.h"
#include "moxing/job/data_memory.h"
#include "moxing/layers/layers.h"
#include "runtime/base/conflict.h"
#include "runtime/base/error.h"
#include "runtime/base/random.h"
#include "tests/moxing/small_run.h"

namespace mox {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RunDataTest : public SmallRun {
 protected:
  // The sizes of the batches that were trained on.
  std::vector<int64_t> sizes_of(RunSpec s) {
    std::vector<int64_t> sizes;
    s.hooks.push_back(
        after_run_hook([&](Session&, const StepResult& result) { sizes.push_back(result.samples()); }));
    run_or_throw(s);
    return sizes;
  }
};

ModelSpec normalised_model(const Inputs& in, ModeKeys mode) {
  Tensor h = layers::dense(in[0], 8, {.use_bias = false});
  h = layers::batch_norm(h, mode, {.activation = relu});
  h = layers::dropout(h, 0.5f, mode);
  const Tensor loss = reduce_mean(square(layers::dense(h, 1) - in[0]));
  return {.loss = loss, .log_info = {{"loss", loss}}};
}

TEST_F(RunDataTest, DropoutAndBatchNormTrainOnASmallerLastBatch) {
  auto s = spec();
  s.model_fn = normalised_model;
  s.inter_mode = ModeKeys::EVAL;
  s.batch_size = 4;
  s.eval_batch_size = 3;
  s.max_number_of_steps = 0;
  s.input_fn = [](ModeKeys mode) { return mode == ModeKeys::TRAIN ? counting_data(9) : counting_data(4); };
  s.optimizer_fn = get_optimizer_fn("sgd", {.learning_rate = 0.001});
  EXPECT_THAT(sizes_of(s), ElementsAre(4, 4, 1));
  EXPECT_EQ(load_checkpoint(log_dir_).global_step, 3);
}

TEST_F(RunDataTest, OneSampleIsAnEpoch) {
  auto s = spec();
  s.input_fn = [](ModeKeys) { return counting_data(1); };
  EXPECT_THAT(sizes_of(s), ElementsAre(1));
}

TEST_F(RunDataTest, FewerSamplesThanABatch) {
  auto s = spec();
  s.input_fn = [](ModeKeys) { return counting_data(3).repeat(); };
  s.batch_size = 8;
  s.max_number_of_steps = 2;
  EXPECT_THAT(sizes_of(s), ElementsAre(8, 8)) << "batches of repeated data cross the borders of epochs";
  s.log_dir = "";
  s.input_fn = [](ModeKeys) { return counting_data(3); };
  EXPECT_THAT(sizes_of(s), ElementsAre(3));
  s.inter_mode = ModeKeys::EVAL;
  EXPECT_DOUBLE_EQ(run_or_throw(s).evaluation.at(1).second, 1);
}

TEST_F(RunDataTest, RowsOfNpyFilesAreOfTheRunsDataMemory) {
  const ScopedConfiguration configuration({"--threads=1", "--num_devices=1", "--data_memory_mb=3"});
  auto s = spec();
  s.input_fn = [](ModeKeys) {
    EXPECT_EQ(data::npy_memory()->bytes(), size_t{3} << 20);
    EXPECT_EQ(data::npy_memory(), internal::data_memory_of_process());
    return counting_data(1);
  };
  EXPECT_THAT(sizes_of(s), ElementsAre(1));
}

TEST_F(RunDataTest, NoSamplesAreAnError) {
  auto s = spec();
  s.log_dir = "";
  s.input_fn = [](ModeKeys) { return counting_data(10).take(0); };
  EXPECT_THAT(message_of_run<DataError>(s), HasSubstr("no samples"));
  s.input_fn = [](ModeKeys mode) {
    return mode == ModeKeys::TRAIN ? counting_data(10) : counting_data(10).take(0);
  };
  s.inter_mode = ModeKeys::EVAL;
  EXPECT_THAT(message_of_run<DataError>(s), HasSubstr("no samples"));
}

TEST_F(RunDataTest, ARunAtTheEndOfItsDataMayBeStartedAgain) {
  auto s = spec();
  s.input_fn = [](ModeKeys) { return counting_data(4); };
  EXPECT_EQ(run_or_throw(s).global_step, 2);
  EXPECT_EQ(run_or_throw(s).global_step, 2);
}

TEST_F(RunDataTest, OtherDataThanThatOfTheCheckpointAreRefusedWithAWayToGoOn) {
  auto s = spec();
  run_or_throw(s);
  s.max_number_of_steps = 8;
  s.input_fn = [](ModeKeys) { return counting_data(12).repeat(); };
  EXPECT_THAT(message_of_run<FailedPrecondition>(s),
              AllOf(HasSubstr(log_dir_), HasSubstr("checkpoint_path")));
  EXPECT_EQ(run(s), 2) << "the same again would be refused again";
  s.checkpoint_path = log_dir_;
  s.log_dir = fresh_directory("other_data");
  EXPECT_EQ(run_or_throw(s).global_step, 8);
}

TEST_F(RunDataTest, InputFnMayBatchByItself) {
  auto s = spec();
  s.auto_batch = false;
  s.inter_mode = ModeKeys::EVAL;
  s.max_number_of_steps = 0;
  s.max_epochs = 2;
  s.input_fn = [](ModeKeys mode) {
    const auto batches = counting_data(7).batch(3);
    return mode == ModeKeys::TRAIN ? batches.repeat() : batches;
  };
  std::vector<double> steps_per_epoch;
  s.hooks = {
      before_run_hook([&](Session& session) { steps_per_epoch.push_back(session.steps_per_epoch()); })};
  EXPECT_THAT(sizes_of(s), ElementsAre(3, 3, 1, 3, 3, 1));
  EXPECT_EQ(steps_per_epoch.at(0), 3);
  EXPECT_DOUBLE_EQ(run_or_throw(s).evaluation.at(1).second, 3) << "each of 0 to 6 counts once";
}

// A window over passes without end: as many elements as one pass has are not those of one.
TEST_F(RunDataTest, APassOfMixedPassesIsRefused) {
  Dataset mixed = counting_data(10).repeat().shuffle(10);
  auto s = spec();
  s.inter_mode = ModeKeys::EVAL;
  s.input_fn = [](ModeKeys mode) {
    return mode == ModeKeys::TRAIN ? counting_data(10).repeat() : counting_data(10).shuffle(10).repeat();
  };
  EXPECT_DOUBLE_EQ(run_or_throw(s).evaluation.at(1).second, 4.5) << "each of 0 to 9 once";
  s.input_fn = [&](ModeKeys) { return mixed; };
  s.output_fn = [](std::span<const OutputBatch>) {};
  const auto refusal_in = [&](ModeKeys mode) {
    s.run_mode = mode;
    s.log_dir = mode == ModeKeys::TRAIN ? "" : log_dir_;
    return message_of_run<Conflict>(s);
  };
  for (const ModeKeys mode : {ModeKeys::TRAIN, ModeKeys::EVAL})
    EXPECT_THAT(refusal_in(mode), AllOf(HasSubstr("input_fn(eval) shuffles above repeat"),
                                        HasSubstr("shuffle(10)"), HasSubstr("eval_steps")));
  EXPECT_THAT(refusal_in(ModeKeys::PREDICT), HasSubstr("input_fn(predict) shuffles above repeat"));
  s.run_mode = ModeKeys::EVAL;
  s.eval_steps = 2;
  EXPECT_EQ(run_or_throw(s).global_step, 4) << "some batches need not be a pass";
}

// Else the word comes from what would read the batches.
TEST_F(RunDataTest, SamplesWithoutAutoBatchAreRefusedByTheOption) {
  auto s = spec();
  const auto refusal = [&] {
    const ScopedConfiguration configuration({"--threads=1", "--log_level=error", "--auto_batch=no"});
    return message_of_run<ConfigError>(s);
  };
  auto samples = Dataset::from_arrays({Array(DType::kFloat32, {4, 1}), Array(DType::kInt32, {4})});
  s.input_fn = [&](ModeKeys) { return samples; };
  EXPECT_THAT(refusal(), AllOf(HasSubstr("auto_batch is false (command line), so that input_fn(train)"),
                               HasSubstr("(float32[1], int32[])"), HasSubstr(".batch(size)")));
  s.inter_mode = ModeKeys::EVAL;
  s.input_fn = [&](ModeKeys mode) { return mode == ModeKeys::TRAIN ? samples.batch(2) : samples; };
  EXPECT_THAT(refusal(), HasSubstr("input_fn(eval)"));
}

TEST_F(RunDataTest, AnEpochNeedNotBeAWholeNumberOfSteps) {
  auto s = spec();
  s.batch_size = 4;
  s.max_number_of_steps = 10;
  s.log_dir = "";
  s.optimizer_fn =
      get_optimizer_fn("sgd", {.learning_rate = "2:1,4:0.5"});  // ten samples: five steps are two epochs
  std::vector<double> rates;
  double steps_per_epoch = 0;
  s.hooks = {before_run_hook([&](Session& session) {
    rates.push_back(session.learning_rate());
    steps_per_epoch = session.steps_per_epoch();
  })};
  run_or_throw(s);
  EXPECT_EQ(steps_per_epoch, 2.5);
  EXPECT_THAT(rates, ElementsAre(1, 1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.5));
  s.input_fn = [](ModeKeys) { return counting_data(10); };
  s.max_number_of_steps = 0;
  run_or_throw(s);
  EXPECT_EQ(steps_per_epoch, 3) << "one pass, whose last batch is smaller";
}

TEST_F(RunDataTest, MaxEpochsCountsPassesOfDataThatRepeatsThatOften) {
  for (const bool endless : {false, true}) {
    auto s = spec();
    s.log_dir = "";
    s.max_number_of_steps = 0;
    s.max_epochs = 2;
    s.batch_size = 4;
    s.input_fn = [endless](ModeKeys) {
      return endless ? counting_data(10).repeat() : counting_data(10).repeat(2);
    };
    const RunResult result = run_or_throw(s);
    EXPECT_EQ(result.global_step, 5);
    EXPECT_EQ(result.stop_reason, "step 5 was reached");
  }
}

TEST_F(RunDataTest, MaxEpochsBeyondCountingIsRefused) {
  auto s = spec();
  s.max_epochs = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(message_of_run<InvalidArgument>(s), HasSubstr("max_epochs"));
}

TEST_F(RunDataTest, WhicheverEndComesFirstCounts) {
  auto s = spec();
  s.max_number_of_steps = 3;
  s.max_epochs = 1;  // five steps
  EXPECT_EQ(run_or_throw(s).global_step, 3);
  s.max_number_of_steps = 100;
  EXPECT_EQ(run_or_throw(s).global_step, 5);
}

TEST_F(RunDataTest, ComponentsMayBeOfAnyNumberAndType) {
  Array x(DType::kFloat32, {6, 4}), mask(DType::kUInt8, {6, 4}), label(DType::kInt64, {6}),
      id(DType::kInt32, {6});
  RandomStream(1, 2).fill_uniform(x.values<float>(), 0, -1, 1);
  for (size_t i = 0; i < 24; ++i) mask.values<uint8_t>()[i] = i % 2;
  for (size_t i = 0; i < 6; ++i)
    label.values<int64_t>()[i] = static_cast<int64_t>(i % 3),
    id.values<int32_t>()[i] = static_cast<int32_t>(i);
  auto s = spec();
  s.input_fn = [&](ModeKeys) { return Dataset::from_arrays({x, mask, label, id}).repeat(); };
  s.max_number_of_steps = 60;
  s.batch_size = 4;
  s.optimizer_fn = get_optimizer_fn("sgd", {.learning_rate = 0.5});
  s.model_fn = [](const Inputs& in, ModeKeys) {
    auto [x, mask, label, id] = in.take<4>();
    EXPECT_EQ(label.dtype(), DType::kInt64);
    const Tensor h = concat({x * cast(mask, DType::kFloat32), layers::embedding(id, 6, 4)}, 1);
    const Tensor loss = reduce_mean(sparse_softmax_cross_entropy(layers::dense(h, 3), label));
    return ModelSpec{.loss = loss, .log_info = {{"loss", loss}}};
  };
  double first = 0, last = 0;
  s.hooks = {after_run_hook([&](Session& session, const StepResult& result) {
    (session.global_step() == 1 ? first : last) = result.number("loss");
  })};
  run_or_throw(s);
  EXPECT_LT(last, first / 2) << "six samples with a row of the table each are learnt by heart";
}

TEST_F(RunDataTest, ALabelOutOfRangeIsNamed) {
  Array x(DType::kFloat32, {4, 2}), label(DType::kInt64, {4});
  for (float& value : x.values<float>()) value = 1;
  label.values<int64_t>()[3] = 3;
  auto s = spec();
  s.input_fn = [&](ModeKeys) { return Dataset::from_arrays({x, label}); };
  s.model_fn = [](const Inputs& in, ModeKeys) {
    const Tensor loss = reduce_mean(sparse_softmax_cross_entropy(layers::dense(in[0], 3), in[1]));
    return ModelSpec{.loss = loss, .log_info = {{"loss", loss}}};
  };
  EXPECT_THAT(message_of_run<InvalidArgument>(s), HasSubstr("the label at position [1] is 3"));
}

}  // namespace
}  // namespace mox
