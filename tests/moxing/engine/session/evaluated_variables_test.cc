// A model function that makes other layers in evaluation than in training.
#include <gmock/gmock.h>

#include "moxing/layers/layers.h"
#include "tests/moxing/small_run.h"

namespace mox {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class EvaluatedVariables : public SmallRun {
 protected:
  using MakeOutput = std::function<Tensor(const Tensor& x, bool trains)>;

  RunSpec spec_of(const MakeOutput& make) {
    RunSpec s = spec();
    s.log_dir = fresh_directory("evaluated_variables");
    s.inter_mode = ModeKeys::EVAL;
    s.model_fn = [make](const Inputs& in, ModeKeys mode) {
      const Tensor loss = reduce_mean(make(in[0], mode == ModeKeys::TRAIN));
      return ModelSpec{.loss = loss, .log_info = {{"loss", loss}}};
    };
    return s;
  }
  std::string said_of(const MakeOutput& make, const std::string& checkpoint_path = "") {
    const ScopedConfiguration configuration({"--threads=1", "--log_level=warning"});
    RunSpec s = spec_of(make);
    s.checkpoint_path = checkpoint_path;
    testing::internal::CaptureStderr();
    run_or_throw(s);
    return testing::internal::GetCapturedStderr();
  }
};

TEST_F(EvaluatedVariables, ThatNobodyTrainsAreSaid) {
  const auto deeper = [](const Tensor& x, bool trains) -> Tensor {
    const Tensor y = layers::dense(x, 1);
    return trains ? y : layers::dense(y, 1);
  };
  EXPECT_THAT(said_of(deeper),
              AllOf(HasSubstr("the evaluation has trainable variables (2) that the training has not"),
                    HasSubstr("dense_1/kernel (made at session/evaluated_variables_test.cc:")));
  // Those of a checkpoint have been trained, and constants need not be.
  RunSpec first = spec_of([](const Tensor& x, bool) { return layers::dense(layers::dense(x, 1), 1); });
  first.log_dir = fresh_directory("evaluated_variables_first");
  run_or_throw(first);
  EXPECT_THAT(said_of(deeper, *first.log_dir), Not(HasSubstr("that the training has not")));
  EXPECT_THAT(said_of([](const Tensor& x, bool trains) {
                const Tensor y = layers::dense(x, 1);
                return trains ? y : y * get_variable("unit", {1}, ones(), {.trainable = false});
              }),
              Not(HasSubstr("that the training has not")));
}

TEST_F(EvaluatedVariables, OfAnotherLayerThatIsCountedAlikeAreSaid) {
  const auto with_head = [](const std::string& name) -> MakeOutput {
    return [name](const Tensor& x, bool trains) -> Tensor {
      const Tensor y = layers::dense(x, 1);
      const Tensor head = trains ? layers::dense(y, 1, {.name = name}) : y;
      return head + layers::dense(y, 1);
    };
  };
  EXPECT_THAT(said_of(with_head("")),
              AllOf(HasSubstr("the evaluation takes variables (2) of another place in model_fn"),
                    HasSubstr("dense_1/kernel (in training made at session/evaluated_variables_test.cc:")));
  EXPECT_THAT(said_of(with_head("head")), Not(HasSubstr("another place")));
}

// Whoever asks the graph for the first number that is free counts as the framework's layers do.
TEST_F(EvaluatedVariables, OfALayerOfOnesOwnThatIsCountedAreSaid) {
  const auto scaled = [](const Tensor& x, SourceLocation where = SourceLocation::current()) {
    const VarScope scope = var_scope(current_graph("scaled").free_scope("scaled"));
    return x * get_variable("factor", {1}, ones(), {}, where);
  };
  const std::string said = said_of([&](const Tensor& x, bool trains) -> Tensor {
    const Tensor y = scaled(x);
    const Tensor head = trains ? scaled(y) : y;
    return head + scaled(y);
  });
  EXPECT_THAT(said, HasSubstr("the evaluation takes variables (1) of another place in model_fn"));
  EXPECT_THAT(said, HasSubstr("scaled_1/factor"));
}

}  // namespace
}  // namespace mox
