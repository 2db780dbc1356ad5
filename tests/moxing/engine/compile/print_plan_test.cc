// --print_plan: shows how a model was compiled, and does nothing else.
#include <gmock/gmock-more-matchers.h>

#include <filesystem>
#include <sstream>

#include "moxing/layers/layers.h"
#include "runtime/base/file.h"
#include "tests/moxing/small_run.h"

namespace mox {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class PrintPlanTest : public SmallRun {
 protected:
  RunSpec images(ModeKeys mode) {
    auto s = spec();
    s.run_mode = mode;
    s.max_number_of_steps = 0;  // a plan needs no end
    s.input_fn = [](ModeKeys) {
      return Dataset::from_arrays({Array(DType::kFloat32, {8, 3, 10, 10})}).repeat();
    };
    s.model_fn = [](const Inputs& in, ModeKeys mode) {
      const Tensor h = layers::conv2d(in[0], 16, {3, 3}, {.name = "conv", .activation = relu});
      const Tensor y = layers::dense(flatten(h), 4, {.name = "fc"});
      const Tensor loss = reduce_mean(square(layers::dropout(y, 0.5f, mode)));
      return ModelSpec{.loss = loss, .log_info = {{"loss", loss}}, .output_info = {{"y", y}}};
    };
    s.output_fn = [](std::span<const OutputBatch>) { ADD_FAILURE() << "nothing is predicted"; };
    s.hooks = {before_run_hook([](Session&) { ADD_FAILURE() << "nothing is trained"; })};
    return s;
  }
  static std::string plan_of(const RunSpec& s) {
    const ScopedConfiguration configuration(
        std::vector<std::string>{"--threads=1", "--log_level=error", "--print_plan"});
    ::testing::internal::CaptureStdout();
    const RunResult result = run_or_throw(s);
    EXPECT_EQ(result.stop_reason, "print_plan");
    return ::testing::internal::GetCapturedStdout();
  }
};

TEST_F(PrintPlanTest, ShowsOpsShapesLayoutsFusionsAndMemoryInEveryMode) {
  for (const ModeKeys mode : {ModeKeys::TRAIN, ModeKeys::EVAL, ModeKeys::PREDICT}) {
    const std::string plan = plan_of(images(mode));
    EXPECT_THAT(plan, AllOf(HasSubstr("#  op"), HasSubstr("MFLOP"), HasSubstr("conv2d"),
                            HasSubstr("float32[2, 16, 10, 10]"), HasSubstr("fusions:"),
                            HasSubstr("memory:\n  arena "), HasSubstr("layout conversions")))
        << to_string(mode);
    EXPECT_EQ(plan.find("_filter_gradient") != std::string::npos, mode == ModeKeys::TRAIN) << plan;
    EXPECT_FALSE(std::filesystem::exists(log_dir_)) << to_string(mode);
  }
}

TEST_F(PrintPlanTest, ColumnsStandUnderTheirHeadings) {
  std::istringstream plan(plan_of(images(ModeKeys::TRAIN)));
  std::string heading;
  std::getline(plan, heading);
  int steps = 0;
  for (std::string line; std::getline(plan, line) && !line.starts_with("fusions"); ++steps) {
    for (const char* column : {"op", "output", "implementation", "name"}) {
      const size_t start = heading.find(column);
      ASSERT_LT(start, line.size()) << line;
      EXPECT_EQ(line[start - 1], ' ') << line;
      EXPECT_NE(line[start], ' ') << line;
    }
    EXPECT_LE(line.size(), 180u) << line;
  }
  EXPECT_GT(steps, 5);
}

// The lines of instructions of this op.
std::vector<std::string> instructions_of(const std::string& plan, const std::string& op) {
  std::vector<std::string> result;
  std::istringstream lines(plan);
  for (std::string line; std::getline(lines, line) && !line.starts_with("fusions");)
    if (line.find(" " + op + " ") != std::string::npos) result.push_back(line);
  return result;
}

TEST_F(PrintPlanTest, MarksInstructionsWhoseBitsDependOnTheNumberOfThreads) {
  const std::string plan = plan_of(images(ModeKeys::TRAIN));
  EXPECT_THAT(instructions_of(plan, "conv2d_filter_gradient"), testing::ElementsAre(HasSubstr(" * ")));
  EXPECT_THAT(instructions_of(plan, "conv2d"), testing::Each(Not(HasSubstr(" * "))));
  EXPECT_THAT(plan, AllOf(HasSubstr("bits: others with another number of threads, by the "),
                          HasSubstr(" instruction(s) marked * (")));
}

TEST_F(PrintPlanTest, SaysWhereNoBitDependsOnTheNumberOfThreads) {
  auto narrow = images(ModeKeys::TRAIN);
  narrow.model_fn = [](const Inputs& in, ModeKeys) {
    const Tensor loss = reduce_mean(square(layers::dense(flatten(in[0]), 4)));
    return ModelSpec{.loss = loss, .log_info = {{"loss", loss}}};
  };
  const std::string plan = plan_of(narrow);
  EXPECT_THAT(plan, AllOf(HasSubstr("bits: the same with any number of threads"), Not(HasSubstr(" * "))));
}

TEST_F(PrintPlanTest, LeavesARunAsItIs) {
  run_or_throw(spec());
  const std::string digest = checkpoint_digest(log_dir_);
  std::vector<std::pair<std::string, std::filesystem::file_time_type>> before, after;
  const auto list = [&](auto& into) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(log_dir_))
      into.emplace_back(entry.path().string(), entry.last_write_time());
    std::sort(into.begin(), into.end());
  };
  list(before);
  // Of another model than the one that is saved there: a plan needs no values.
  for (const ModeKeys mode : {ModeKeys::TRAIN, ModeKeys::EVAL, ModeKeys::PREDICT}) plan_of(images(mode));
  list(after);
  EXPECT_EQ(before, after);
  EXPECT_EQ(checkpoint_digest(log_dir_), digest);
}

}  // namespace
}  // namespace mox
