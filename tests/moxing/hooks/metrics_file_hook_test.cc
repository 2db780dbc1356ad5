// The hook that writes metrics.jsonl, in real runs.
#include <gmock/gmock-more-matchers.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "moxing/hooks/hooks.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "tests/moxing/small_run.h"

namespace mox {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class MetricsFileHook : public SmallRun {
 protected:
  std::vector<json> metrics_lines() const {
    std::vector<json> lines;
    std::istringstream text(read_file(log_dir_ + "/metrics.jsonl"));
    for (std::string line; std::getline(text, line);) lines.push_back(json::parse(line));
    return lines;
  }
};

TEST_F(MetricsFileHook, HoldsStepsAndEvaluations) {
  auto s = spec();
  s.save_summary_steps = 2;
  s.inter_mode = ModeKeys::EVAL;
  s.optimizer_fn = get_optimizer_fn("sgd", {.learning_rate = piecewise_constant({2}, {1.0, 0.5})});
  run_or_throw(s);
  const auto lines = metrics_lines();
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].at("step"), 2);
  EXPECT_EQ(lines[0].at("loss"), -1);
  EXPECT_EQ(lines[0].at("mean"), 2.5);
  EXPECT_EQ(lines[0].at("learning_rate"), 1.0) << "the rate of this step, not of the next";
  EXPECT_GT(lines[0].at("samples_per_second").get<double>(), 0);
  EXPECT_EQ(lines[1].at("step"), 4);
  EXPECT_EQ(lines[1].at("learning_rate"), 0.5);
  EXPECT_EQ(lines[2].at("evaluation"), true);
  EXPECT_EQ(lines[2].at("mean"), 1.5);
}

TEST_F(MetricsFileHook, IsCutToTheRestoredStep) {
  auto s = spec();
  s.save_summary_steps = 1;
  s.save_model_steps = 2;
  auto failing = std::make_shared<CallbackHook>();
  failing->on_before = [](Session& session) {
    if (session.global_step() == 3) throw DataError("power cut");
  };
  s.hooks = {failing};
  message_of_run<DataError>(s);
  ASSERT_EQ(metrics_lines().size(), 3u);
  // What a kill leaves: half a line; and a line that someone else wrote.
  std::ofstream(log_dir_ + "/metrics.jsonl", std::ios::app) << "{\"step\":\"two\"}\n{\"step\":4,\"lo";
  s.hooks = {};
  run_or_throw(s);
  std::vector<int64_t> steps;
  for (const json& line : metrics_lines()) steps.push_back(line.at("step"));
  EXPECT_THAT(steps, ElementsAre(1, 2, 3, 4));
}

TEST_F(MetricsFileHook, HoldsAnEvaluationBeforeTheFirstStep) {
  auto s = spec();
  s.save_summary_steps = 2;
  s.inter_mode = ModeKeys::EVAL;
  auto hook = std::make_shared<CallbackHook>();
  hook->on_create = [](Session& session) { session.evaluate(); };
  s.hooks = {hook};
  run_or_throw(s);
  const auto lines = metrics_lines();
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0].at("step"), 0);
  EXPECT_EQ(lines[0].at("evaluation"), true);
  EXPECT_EQ(lines[1].at("step"), 2);
}

TEST_F(MetricsFileHook, BelongsToTheRunAndNotToTheHook) {
  auto s = spec();
  s.save_summary_steps = 0;
  s.hooks = {metrics_file_hook(1)};
  const std::string directory = *s.log_dir;
  s.log_dir = directory + "/other";
  run_or_throw(s);
  s.log_dir = directory;
  const auto steps_of_run = [&] {
    run_or_throw(s);
    std::vector<int64_t> steps;
    for (const json& line : metrics_lines()) steps.push_back(line.at("step"));
    return steps;
  };
  const std::vector<int64_t> steps = steps_of_run();
  EXPECT_EQ(steps.size(), static_cast<size_t>(*s.max_number_of_steps));
  // From the start again, in the same directory: the steps that the file has come again.
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    if (entry.path().filename() != "metrics.jsonl") std::filesystem::remove_all(entry.path());
  EXPECT_EQ(steps_of_run(), steps);
}

TEST_F(MetricsFileHook, NeedsADirectoryAndAnInterval) {
  EXPECT_THROW(metrics_file_hook(0), InvalidArgument);
  auto s = spec();
  s.log_dir = "";
  s.hooks = {metrics_file_hook(1)};
  EXPECT_THAT(message_of_run<FailedPrecondition>(s), HasSubstr("log_dir"));
}

}  // namespace
}  // namespace mox
