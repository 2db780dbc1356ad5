// Memory that the system refuses while a run calls what others have written: the error says whose it was.
#include <gmock/gmock.h>

#include <new>

#include "runtime/base/error.h"
#include "tests/moxing/small_run.h"

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
