// Memory that the system refuses while a run calls what others have written: the error says whose it was.
#include <gmock/gmock.h>

#include <cstdio>
#include <cstdlib>
#include <new>

#include "runtime/base/error.h"
#include "tests/moxing/small_run.h"
#include "tests/support/limited_addresses.h"
#include "tests/support/sanitizers.h"

namespace mox {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class RefusedMemory : public SmallRun {
 protected:
  static std::string message(const RunSpec& s) {
    return message_of<OutOfMemory>([&] { run_or_throw(s); });
  }
  static auto says_how_much_there_is() {
    return testing::ContainsRegex(
        "takes more memory than there is: the process holds [0-9]+ MiB .[0-9]+ MiB of addresses. of the "
        "[0-9]+ MiB that it may have");
  }
};

TEST_F(RefusedMemory, OfInputFnIsNamed) {
  auto s = spec();
  s.input_fn = [](ModeKeys) -> Dataset { throw std::bad_alloc(); };
  EXPECT_THAT(message(s), AllOf(HasSubstr("what input_fn(train) makes"), says_how_much_there_is(),
                                HasSubstr("data_memory_mb")));
}

TEST_F(RefusedMemory, OfModelFnIsNamed) {
  auto s = spec();
  s.model_fn = [](const Inputs&, ModeKeys) -> ModelSpec { throw std::bad_alloc(); };
  EXPECT_THAT(message(s),
              AllOf(HasSubstr("the model that model_fn(train) makes for batches of (float32[2, 1])"),
                    says_how_much_there_is(), HasSubstr("use a smaller batch_size")));
}

TEST_F(RefusedMemory, OfABatchIsNamedWithItsSize) {
  for (const char* threads : {"0", "2"}) {
    const ScopedConfiguration configured(
        {"--threads=1", "--log_level=error", std::string("--data_threads=") + threads});
    auto s = spec();
    s.log_dir = fresh_directory("refused_memory");
    s.input_fn = [](ModeKeys) {
      return counting_data(10).repeat().map([](const Element& sample) -> Element {
        if (sample[0].values<float>()[0] == 7) throw std::bad_alloc();
        return sample;
      });
    };
    EXPECT_THAT(message(s), AllOf(HasSubstr("what the data set ("), HasSubstr("makes for a batch of 8 bytes"),
                                  says_how_much_there_is(),
                                  HasSubstr("use a smaller batch_size, or lower data_threads")));
  }
}

TEST_F(RefusedMemory, OfAHookIsNamed) {
  auto s = spec();
  s.hooks = {before_run_hook([](Session&) {}),
             after_run_hook([](Session&, const StepResult&) { throw std::bad_alloc(); })};
  EXPECT_THAT(message(s), AllOf(testing::ContainsRegex("what after_run of hook [0-9]+ of [0-9]+ makes"),
                                says_how_much_there_is()));
}

// Under a limit on the address space, which an array reaches: it is no std::bad_alloc.
class RefusedArrayDeathTest : public RefusedMemory {
 protected:
  void SetUp() override {
    if (kReservesAddressSpace)
      GTEST_SKIP() << "needs a build without sanitizers, which want more address space than a limit leaves";
    testing::FLAGS_gtest_death_test_style = "threadsafe";
  }

  // Ends the process, after what the run says.
  static void run_within(size_t room, const RunSpec& s) {
    limit_addresses(room);
    try {
      run_or_throw(s);
    } catch (const OutOfMemory& error) {
      std::fputs(error.what(), stderr);
      std::exit(0);
    }
    std::exit(3);
  }

  static constexpr int64_t kElements = 32 << 20;  // of 128 MiB
  static constexpr size_t kArray = size_t{4} * kElements, kRest = size_t{80} << 20;
};

TEST_F(RefusedArrayDeathTest, OfABatchIsNamedWithItsSize) {
  auto s = spec();
  s.input_fn = [](ModeKeys) {
    return counting_data(10).repeat().map_into({{DType::kFloat32, {kElements}}},
                                               [](const SampleContext&, const Element&, std::span<Array>) {});
  };
  EXPECT_EXIT(run_within(kRest, s), testing::ExitedWithCode(0),
              "what the data set .* makes for a batch of 268435456 bytes takes more memory than there is: .*"
              "an array takes 268435456 bytes of memory, .* use a smaller batch_size");
}

TEST_F(RefusedArrayDeathTest, OfInputFnIsNamed) {
  auto s = spec();
  s.input_fn = [](ModeKeys) { return Dataset::from_arrays({Array(DType::kFloat32, {10, kElements})}); };
  EXPECT_EXIT(run_within(kRest, s), testing::ExitedWithCode(0),
              "what input_fn.train. makes takes more memory than there is: float32.10, 33554432.: an array "
              "takes 1342177280 bytes of memory, .*data_memory_mb");
}

TEST_F(RefusedArrayDeathTest, OfAHookIsNamed) {
  auto s = spec();
  s.hooks = {after_run_hook([](Session&, const StepResult&) { Array(DType::kFloat32, {kElements}); })};
  EXPECT_EXIT(run_within(kRest, s), testing::ExitedWithCode(0),
              "what after_run of hook [0-9]+ of [0-9]+ makes takes more memory than there is: "
              "float32.33554432.: an array takes 134217728 bytes");
}

// Two replicas: their gradients are added before one is applied.
TEST_F(RefusedArrayDeathTest, OfTheGradientsIsNamed) {
  const ScopedConfiguration configured({"--threads=1", "--log_level=error", "--logical_replicas=2"});
  auto s = spec();
  s.model_fn = [](const Inputs& in, ModeKeys) -> ModelSpec {
    return {.loss = reduce_sum(get_variable("w", {kElements}, zeros())) + reduce_sum(in[0]) * 0.0f};
  };
  EXPECT_EXIT(run_within(kArray + kRest, s), testing::ExitedWithCode(0),
              "the gradients of all trained variables: float32.33554432.: an array takes 134217728 bytes of "
              "memory, .*num_devices");
}

TEST_F(RefusedArrayDeathTest, OfTheCopyThatACheckpointIsWrittenFromIsNamed) {
  auto s = spec();
  s.model_fn = [](const Inputs& in, ModeKeys mode) {
    ModelSpec model = constant_slope_model(in, mode);
    model.loss = model.loss + reduce_sum(get_variable("kept", {kElements}, zeros(), {.trainable = false}));
    return model;
  };
  EXPECT_EXIT(run_within(kArray + kRest, s), testing::ExitedWithCode(0),
              "the copy of the variables .* from which the checkpoint of step 0 is written takes more memory "
              "than there is: float32.33554432.: an array takes 134217728 bytes of memory");
}

// What nobody names, the program's own output_fn here.
TEST_F(RefusedMemory, OfTheRestSaysWhatTheProcessHolds) {
  auto s = spec();
  s.model_fn = [](const Inputs& in, ModeKeys mode) {
    ModelSpec model = constant_slope_model(in, mode);
    model.output_info = {{"twice", in[0] + in[0]}};
    return model;
  };
  run_or_throw(s);
  s.run_mode = ModeKeys::PREDICT;
  s.output_fn = [](std::span<const OutputBatch>) { throw std::bad_alloc(); };
  testing::internal::CaptureStderr();
  EXPECT_NE(run(s), 0);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(testing::ContainsRegex("the process holds [0-9]+ MiB .[0-9]+ MiB of addresses. of the"),
                    HasSubstr("batch_size, num_devices, data_memory_mb")));
}

}  // namespace
}  // namespace mox
