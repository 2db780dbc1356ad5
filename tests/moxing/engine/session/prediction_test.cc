// run_mode PREDICT and EVAL as a whole: order, names, limits, hooks, what is kept.
#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "moxing/hooks/hooks.h"
#include "moxing/metrics/metrics.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/replicas/short_turns.h"
#include "tests/moxing/small_run.h"

namespace mox {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Seven samples that are called after their numbers.
class NamedSource : public RandomAccessSource {
 public:
  int64_t size() const override { return 7; }
  const std::vector<TensorType>& signature() const override { return signature_; }
  void read(int64_t index, const SampleContext&, std::span<std::byte* const> components) const override {
    *reinterpret_cast<float*>(components[0]) = static_cast<float>(10 * index);
  }
  std::string name(int64_t index) const override { return "file " + std::to_string(index); }
  std::string describe() const override { return "named"; }

 private:
  std::vector<TensorType> signature_{{DType::kFloat32, {1}}};
};

class PredictionTest : public SmallRun {
 protected:
  // A checkpoint to predict from: w is -4.
  RunSpec predicting() {
    auto s = spec();
    s.model_fn = model;
    run_or_throw(s);
    s.run_mode = ModeKeys::PREDICT;
    s.input_fn = [](ModeKeys) { return Dataset::from_source(std::make_shared<NamedSource>()); };
    s.batch_size = 3;
    return s;
  }
  static ModelSpec model(const Inputs& in, ModeKeys) {
    const Tensor w = get_variable("w", {}, zeros());
    return {.loss = w + reduce_sum(in[0]) * 0.0f,
            .log_info = {{"loss", w + 0.0f}, {"mean", reduce_mean(in[0])}},
            .output_info = {{"x", squeeze(in[0], {1})}, {"y", in[0] + w}}};
  }
  nlohmann::json results() const { return nlohmann::json::parse(read_file(log_dir_ + "/results.json")); }
};

TEST_F(PredictionTest, WritesARowForEachSampleWithNumberAndName) {
  auto s = predicting();
  s.predictions = log_dir_ + "/p.csv";
  const RunResult result = run_or_throw(s);
  EXPECT_EQ(result.global_step, 4);
  std::string expected = "sample,file,x,y/0\n";
  for (int i = 0; i < 7; ++i)
    expected += std::to_string(i) + ",file " + std::to_string(i) + "," + std::to_string(10 * i) + "," +
                std::to_string(10 * i - 4) + "\n";
  EXPECT_EQ(read_file(*s.predictions), expected);
  const auto kept = results().at("predict");
  EXPECT_EQ(kept.at("samples"), 7);
  EXPECT_EQ(kept.at("checkpoint"), "checkpoint-4");
  EXPECT_EQ(kept.at("predictions"), *s.predictions);
}

// The threads of a pass over data are those of a lane, which notices other work.
TEST_F(PredictionTest, ComputesInALane) {
  auto s = predicting();
  bool had_short_turns = false;
  s.output_fn = [&](std::span<const OutputBatch>) { had_short_turns = internal::has_short_turns(); };
  const ScopedConfiguration configuration({"--threads=2", "--log_level=error"});
  run_or_throw(s);
  bool system_has_them = false;  // Linux from 6.12 on
  std::thread([&] {
    internal::take_short_turns();
    system_has_them = internal::has_short_turns();
  }).join();
  EXPECT_EQ(had_short_turns, system_has_them);
  EXPECT_FALSE(internal::has_short_turns());
}

// As an input_fn does that looks at no mode.
TEST_F(PredictionTest, DataInAnotherOrderAreSaid) {
  auto s = predicting();
  s.predictions = log_dir_ + "/p.csv";
  const auto said_of = [&](const Dataset& data) {
    s.input_fn = [&](ModeKeys) { return data; };
    const ScopedConfiguration configuration({"--threads=1", "--log_level=warning"});
    testing::internal::CaptureStderr();
    run_or_throw(s);
    return testing::internal::GetCapturedStderr();
  };
  const Dataset data = Dataset::from_source(std::make_shared<NamedSource>());
  EXPECT_THAT(said_of(data.shuffle(7).repeat()),
              AllOf(HasSubstr("input_fn(predict) gives its data shuffled"), HasSubstr("shuffle(7)")));
  EXPECT_EQ(said_of(data), "");
}

// The largest of scores that are NaN is the first, which looks like an answer.
TEST_F(PredictionTest, PredictionsThatAreNotFiniteAreSaid) {
  auto s = predicting();
  s.model_fn = [](const Inputs& in, ModeKeys) {
    const Tensor w = get_variable("w", {}, zeros());
    return ModelSpec{.output_info = {{"class", argmax(log(in[0] - 25.0f + w * 0.0f))},
                                     {"score", squeeze(log(in[0] - 25.0f), {1})}}};
  };
  s.output_fn = [](std::span<const OutputBatch>) {};
  const ScopedConfiguration configuration({"--threads=1", "--log_level=warning"});
  testing::internal::CaptureStderr();
  run_or_throw(s);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("the predictions of 3 of 7 samples are not finite (the first: 'score' of sample 0, "
                        "file 0)"));
  s.model_fn = [](const Inputs& in, ModeKeys) {
    get_variable("w", {}, zeros());
    return ModelSpec{.output_info = {{"score", cast(log(in[0] - 25.0f), DType::kBFloat16)}}};
  };
  testing::internal::CaptureStderr();
  run_or_throw(s);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("the predictions of 3 of 7 samples"));
}

TEST_F(PredictionTest, ASignalLeavesNothingOfTheFile) {
  auto s = predicting();
  s.predictions = log_dir_ + "/p.csv";
  class EndHook : public Hook {
   public:
    void end(Session& session) override { was_interrupted = session.interrupted(); }
    bool was_interrupted = false;
  };
  const auto hook = std::make_shared<EndHook>();
  s.hooks = {hook};
  int calls = 0;
  s.output_fn = [&](std::span<const OutputBatch>) {
    if (++calls == 2) std::raise(SIGTERM);
  };
  EXPECT_EQ(run(s), kExitInterrupted);
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(hook->was_interrupted);
  for (const auto& entry : std::filesystem::directory_iterator(log_dir_))
    EXPECT_THAT(entry.path().filename().string(), Not(HasSubstr("p.csv")));
  EXPECT_FALSE(std::filesystem::exists(log_dir_ + "/results.json"));
}

TEST_F(PredictionTest, OutputFnKnowsWhichSamplesItGets) {
  auto s = predicting();
  std::vector<int64_t> first;
  std::vector<std::string> names;
  s.output_every_n_steps = 2;
  std::vector<size_t> calls;
  s.output_fn = [&](std::span<const OutputBatch> batches) {
    calls.push_back(batches.size());
    for (const OutputBatch& batch : batches) {
      first.push_back(batch.first_sample);
      EXPECT_EQ(batch[0].second.values<float>()[0], static_cast<float>(10 * batch.first_sample));
      names.insert(names.end(), batch.sample_names.begin(), batch.sample_names.end());
    }
  };
  run_or_throw(s);
  EXPECT_THAT(first, ElementsAre(0, 3, 6));
  EXPECT_THAT(calls, ElementsAre(2, 1));
  ASSERT_EQ(names.size(), 7U);
  EXPECT_EQ(names[6], "file 6");
}

TEST_F(PredictionTest, NamesSurviveTheOperationsOfADataSet) {
  auto s = predicting();
  s.auto_batch = false;
  s.input_fn = [](ModeKeys) {
    const auto numbers = Dataset::from_arrays({Array(DType::kFloat32, {7})});
    return Dataset::zip({Dataset::from_source(std::make_shared<NamedSource>()), numbers})
        .skip(1)
        .shard(1, 2)
        .filter([](const Element& sample) { return sample[0].values<float>()[0] != 40; })
        .map([](const Element& sample) { return Element{sample[0]}; })
        .cache()
        .batch(2)
        .prefetch(1);
  };
  std::vector<std::string> names;
  s.output_fn = [&](std::span<const OutputBatch> batches) {
    for (const OutputBatch& batch : batches)
      names.insert(names.end(), batch.sample_names.begin(), batch.sample_names.end());
  };
  run_or_throw(s);
  EXPECT_THAT(names, ElementsAre("file 2", "file 6"));
}

TEST_F(PredictionTest, DataWithoutNamesHaveNoColumnOfFiles) {
  auto s = predicting();
  s.input_fn = [](ModeKeys) { return counting_data(4); };
  s.predictions = log_dir_ + "/p.jsonl";
  run_or_throw(s);
  EXPECT_THAT(read_file(*s.predictions), HasSubstr("{\"sample\":3,\"x\":3,\"y\":[-1]}\n"));
}

TEST_F(PredictionTest, PredictStepsTakesTheFirstBatches) {
  auto s = predicting();
  s.predictions = log_dir_ + "/p.csv";
  s.predict_steps = 2;
  run_or_throw(s);
  EXPECT_EQ(results().at("predict").at("samples"), 6);
}

TEST_F(PredictionTest, SomethingMustReceiveThem) {
  auto s = predicting();
  EXPECT_THAT(message_of_run<InvalidArgument>(s), HasSubstr("--predictions=FILE.csv"));
  s.predictions = log_dir_ + "/p.xml";
  EXPECT_THAT(message_of_run<InvalidArgument>(s), HasSubstr(".csv, .jsonl or .npz"));
  s.predictions = log_dir_ + "/p.csv";
  s.input_fn = [](ModeKeys) { return counting_data(4).take(0); };
  EXPECT_THAT(message_of_run<DataError>(s), HasSubstr("has no samples"));
  const ScopedConfiguration configuration({"--threads=1", "--log_level=error", "--gather_predictions=false"});
  EXPECT_THAT(message_of_run<InvalidArgument>(s), HasSubstr("gather_predictions cannot be false"));
}

TEST_F(PredictionTest, AFileThatCannotBeMadeIsSaidBeforeAnyWork) {
  auto s = predicting();
  s.input_fn = [](ModeKeys) -> Dataset { throw DataError("the data were opened first"); };
  for (const char* place : {"/no/such/p.csv", "/no/such/p.jsonl", "/no/such/p.npz", "/p.xml"}) {
    s.predictions = log_dir_ + place;
    EXPECT_THAT(message_of_run<InvalidArgument>(s), HasSubstr(place));
    EXPECT_FALSE(std::filesystem::exists(log_dir_ + "/no"));
  }
  s.predictions = log_dir_ + "/folder.csv";
  std::filesystem::create_directory(*s.predictions);
  EXPECT_THAT(message_of_run<InvalidArgument>(s), HasSubstr("which is a directory"));
}

TEST_F(PredictionTest, AFileThatNothingWritesIsNamed) {
  auto s = predicting();
  s.run_mode = ModeKeys::EVAL;
  const std::string file = log_dir_ + "/p.csv";
  const ScopedConfiguration configuration({"--threads=1", "--log_level=warning", "--predictions=" + file});
  testing::internal::CaptureStderr();
  run_or_throw(s);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("predictions is '" + file), HasSubstr("run_mode is eval, not predict")));
}

TEST_F(PredictionTest, AnErrorLeavesNoFile) {
  auto s = predicting();
  s.predictions = log_dir_ + "/p.csv";
  auto hook = std::make_shared<CallbackHook>();
  hook->on_after = [](Session& session, const StepResult&) {
    if (session.samples() == 6) throw DataError("enough");
  };
  s.hooks = {hook};
  EXPECT_EQ(message_of_run<DataError>(s), "enough");
  EXPECT_FALSE(std::filesystem::exists(*s.predictions));
  EXPECT_FALSE(std::filesystem::exists(*s.predictions + ".part"));
}

TEST_F(PredictionTest, HooksAreCalledInEveryMode) {
  for (const ModeKeys mode : {ModeKeys::PREDICT, ModeKeys::EVAL}) {
    auto s = predicting();
    s.run_mode = mode;
    s.output_fn = [](std::span<const OutputBatch>) {};
    std::vector<std::string> calls;
    auto hook = std::make_shared<CallbackHook>();
    hook->on_begin = [&](ModelBuild&) { calls.emplace_back("begin"); };
    hook->on_create = [&](Session& session) {
      calls.emplace_back("create");
      EXPECT_EQ(session.mode(), mode);
      EXPECT_EQ(session.global_step(), 4);
    };
    hook->on_before = [&](Session&) { calls.emplace_back("before"); };
    hook->on_after = [&](Session&, const StepResult& result) {
      calls.emplace_back("after");
      EXPECT_EQ(result.number("loss"), -4);
    };
    hook->on_evaluation = [&](Session&, const Metrics& metrics) {
      calls.emplace_back("evaluation");
      EXPECT_EQ(metrics[1].second, 30);
    };
    hook->on_end = [&](Session&) { calls.emplace_back("end"); };
    // Hooks of training, as a program has them in its run spec, stay out of it.
    s.hooks = {hook, early_stopping_hook({.metric = "loss"}), nan_guard_hook(), stop_at_step_hook(1)};
    run_or_throw(s);
    std::vector<std::string> expected = {"begin", "create", "before", "after", "before",
                                         "after", "begin",  "before", "after"};
    if (mode == ModeKeys::EVAL) expected.emplace_back("evaluation");
    expected.emplace_back("end");
    EXPECT_EQ(calls, expected);
  }
}

TEST_F(PredictionTest, HooksMayStopAPassAndMayNotTrain) {
  auto s = predicting();
  s.predictions = log_dir_ + "/p.csv";
  s.hooks = {
      after_run_hook([](Session& session, const StepResult&) { session.request_stop("seen enough"); })};
  const auto said = [&] {
    const ScopedConfiguration configuration({"--threads=1", "--log_level=warning"});
    testing::internal::CaptureStderr();
    EXPECT_EQ(run_or_throw(s).stop_reason, "seen enough");
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(said(), AllOf(HasSubstr("a hook has asked to stop (seen enough) after 3 samples"),
                            HasSubstr("run_mode predict"), HasSubstr("mox::TrainingHook")));
  EXPECT_EQ(results().at("predict").at("samples"), 3);
  s.batch_size = 100;  // there is nothing that it has stopped
  EXPECT_EQ(said(), "");
  s.hooks = {before_run_hook([](Session& session) { session.save_checkpoint(); })};
  EXPECT_THAT(message_of_run<FailedPrecondition>(s),
              HasSubstr("Session::save_checkpoint in run_mode predict"));
}

TEST_F(PredictionTest, APassThatAHookStopsBeforeItBeginsKeepsEarlierResults) {
  auto s = predicting();
  s.predictions = log_dir_ + "/p.csv";
  auto hook = std::make_shared<CallbackHook>();
  hook->on_create = [](Session& session) { session.request_stop("seen enough"); };
  for (const ModeKeys mode : {ModeKeys::PREDICT, ModeKeys::EVAL}) {
    s.run_mode = mode;
    s.hooks = {};
    run_or_throw(s);
    const auto kept = results();
    const std::string lines = read_file(log_dir_ + "/metrics.jsonl"), rows = read_file(*s.predictions);
    s.hooks = {hook};
    EXPECT_THAT(message_of_run<FailedPrecondition>(s),
                AllOf(HasSubstr("a hook has asked to stop (seen enough) before the first batch"),
                      HasSubstr("earlier results are as they were")));
    EXPECT_EQ(run(s), 1);
    EXPECT_EQ(results(), kept);
    EXPECT_EQ(read_file(log_dir_ + "/metrics.jsonl"), lines);
    EXPECT_EQ(read_file(*s.predictions), rows);
  }
}

TEST_F(PredictionTest, DataWithoutSamplesLeaveAnEarlierFile) {
  auto s = predicting();
  s.predictions = log_dir_ + "/p.csv";
  run_or_throw(s);
  const std::string rows = read_file(*s.predictions);
  s.input_fn = [](ModeKeys) { return counting_data(4).take(0); };
  EXPECT_THAT(message_of_run<DataError>(s), HasSubstr("the data of input_fn(predict) has no samples"));
  EXPECT_EQ(read_file(*s.predictions), rows);
}

TEST_F(PredictionTest, AnEvaluationIsKeptBesideItsCheckpoint) {
  auto s = predicting();
  s.run_mode = ModeKeys::EVAL;
  s.model_fn = [](const Inputs& in, ModeKeys mode) {
    ModelSpec spec = model(in, mode);
    spec.metrics = {{"share", metrics::mean(in[0])},
                    {"table",
                     {.inputs = {in[0]},
                      .add = [](const metrics::Sample&, metrics::State&) {},
                      .result = [](const metrics::State&) -> metrics::Result {
                        return {{}, {.columns = {"n"}, .rows = {{"row", {2.5}}}}};
                      }}}};
    return spec;
  };
  run_or_throw(s);
  const auto kept = results().at("eval");
  EXPECT_EQ(kept.at("metrics").at("share"), 30);
  EXPECT_EQ(kept.at("tables").at("table").at("rows").at("row")[0], 2.5);
  EXPECT_EQ(kept.at("global_step"), 4);
  const std::string lines = read_file(log_dir_ + "/metrics.jsonl");
  EXPECT_THAT(lines,
              AllOf(HasSubstr("\"step\":4,\"evaluation\":true,\"samples\":" + kept.at("samples").dump()),
                    HasSubstr("\"share\":30")));
  s.run_mode = ModeKeys::PREDICT;
  s.predictions = log_dir_ + "/p.csv";
  run_or_throw(s);
  EXPECT_TRUE(results().contains("eval")) << "each mode keeps its own";
}

TEST_F(PredictionTest, OutputFnIsNotCalledForAModelThatHasNothingForIt) {
  auto s = spec();
  s.output_every_n_steps = 1;
  s.output_fn = [](std::span<const OutputBatch>) { ADD_FAILURE() << "there is no output_info"; };
  run_or_throw(s);
}

}  // namespace
}  // namespace mox
