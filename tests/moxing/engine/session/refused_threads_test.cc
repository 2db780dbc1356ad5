// Threads that the system refuses where no training has asked for them: libgomp would end the process.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>

#include "moxing/engine/session/predictor.h"
#include "runtime/base/error.h"
#include "runtime/exec/evaluate.h"
#include "tests/moxing/small_run.h"
#include "tests/support/sanitizers.h"

namespace mox {
namespace {

class RefusedThreadsDeathTest : public SmallRun {
 protected:
  void SetUp() override {
    if (kReservesAddressSpace)
      GTEST_SKIP() << "needs a build without sanitizers, which want more address space than a limit leaves";
    testing::FLAGS_gtest_death_test_style = "threadsafe";
  }

  RunSpec doubling() {
    auto s = spec();
    s.model_fn = [](const Inputs& in, ModeKeys mode) {
      ModelSpec model = constant_slope_model(in, mode);
      model.output_info = {{"twice", in[0] + in[0]}};
      return model;
    };
    return s;
  }

  // Of the address space, room for the stacks of a few threads; what is refused then is printed.
  static void compute_within_few_threads(const std::function<void()>& compute) {
    pthread_attr_t attributes;
    size_t stack_bytes = 0, pages = 0;
    pthread_getattr_default_np(&attributes);
    pthread_attr_getstacksize(&attributes, &stack_bytes);
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t limit = pages * static_cast<size_t>(sysconf(_SC_PAGESIZE)) + 6 * stack_bytes;
    const rlimit room = {limit, limit};
    if (setrlimit(RLIMIT_AS, &room) != 0) std::exit(2);
    try {
      compute();
    } catch (const FailedPrecondition& error) {
      std::fputs(error.what(), stderr);
      std::exit(0);
    }
    std::exit(3);
  }

  static constexpr const char* kRefusal =
      "63 threads compute beside the first, but the system has refused .*ulimit.*threads";
};

TEST_F(RefusedThreadsDeathTest, OfAPredictorAreAnError) {
  const RunSpec s = doubling();
  run_or_throw(s);
  const Predictor predictor(log_dir_, s.model_fn, {.threads = 64});
  const std::vector<Array> batch = {Array(DType::kFloat32, {2, 1})};
  EXPECT_EXIT(compute_within_few_threads([&] { predictor.predict(batch); }), testing::ExitedWithCode(0),
              kRefusal);
  EXPECT_EXIT(compute_within_few_threads([&] { predictor.prepare({batch[0].type()}); }),
              testing::ExitedWithCode(0), kRefusal);
}

TEST_F(RefusedThreadsDeathTest, OfRunModesWithoutTrainingAreAnError) {
  RunSpec s = doubling();
  run_or_throw(s);
  const ScopedConfiguration wide({"--threads=64", "--log_level=error"});
  s.output_fn = [](std::span<const OutputBatch>) {};
  for (const ModeKeys mode : {ModeKeys::PREDICT, ModeKeys::EVAL}) {
    s.run_mode = mode;
    EXPECT_EXIT(compute_within_few_threads([&] { run_or_throw(s); }), testing::ExitedWithCode(0), kRefusal);
  }
}

TEST_F(RefusedThreadsDeathTest, OfEvaluateAreAnError) {
  Graph graph;
  const GraphScope scope(graph);
  const Tensor x = graph.input(0, {DType::kFloat32, Shape{1 << 20}}, SourceLocation::current());
  const Tensor y = x + x;
  const std::vector<Array> inputs = {Array(DType::kFloat32, {1 << 20})};
  EXPECT_EXIT(compute_within_few_threads([&] { evaluate(std::span(&y, 1), inputs, {.threads = 64}); }),
              testing::ExitedWithCode(0), kRefusal);
  EXPECT_EQ(evaluate(std::span(&y, 1), inputs, {.threads = 2}).size(), 1U);
}

}  // namespace
}  // namespace mox
