#include "moxing/image_sets/label_names_hook.h"

#include <gmock/gmock-more-matchers.h>

#include "moxing/image_sets/image_options.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "tests/moxing/small_run.h"
#include "tests/support/message_of.h"

namespace mox {
namespace {

using LabelNamesHook = SmallRun;
using testing::HasSubstr;

TEST_F(LabelNamesHook, WritesTheMappingAndRefusesAnother) {
  RunSpec run = spec();
  run.hooks = {label_names_hook({"daisy", "rose", "tulip"})};
  run_or_throw(run);
  EXPECT_EQ(read_file(log_dir_ + "/labels.txt"), "0: daisy\n1: rose\n2: tulip\n");

  run.max_number_of_steps = 6;
  run_or_throw(run);  // the same names

  run.max_number_of_steps = 8;
  run.hooks = {label_names_hook({"daisy", "tulip", "rose"})};
  EXPECT_THAT(message_of_run<DataError>(run), HasSubstr("label 1: 'rose' before, 'tulip' now"));
  run.hooks = {label_names_hook({"daisy", "rose"})};
  EXPECT_THAT(message_of_run<DataError>(run), HasSubstr("label 2: 'tulip' before, nothing now"));
  EXPECT_EQ(read_file(log_dir_ + "/labels.txt"), "0: daisy\n1: rose\n2: tulip\n");
}

// What is written is what is read, or is refused.
TEST_F(LabelNamesHook, KeepsNamesAsTheyAre) {
  const std::vector<std::string> names = {" yes", "yes", "\"no\"", "\"", "maybe ", "1: x", "\\n", "é"};
  const std::string path = log_dir_ + ".txt";
  data::write_label_names(path, names);
  EXPECT_EQ(data::read_label_names(path), names);
  for (const std::string name : {"da\nrk", "da\rrk", "d\tark", "\x1b[31m", "\x7f"})
    EXPECT_THAT(message_of<DataError>([&] {
                  data::write_label_names(path, {"light", name});
                }),
                testing::AllOf(HasSubstr("another name"), HasSubstr("\\x")));
  EXPECT_THAT(message_of<DataError>([&] { data::write_label_names(path, {""}); }), HasSubstr("empty name"));
  EXPECT_THAT(message_of<DataError>([&] { data::write_label_names(path, {" \xe9"}); }),
              testing::AllOf(HasSubstr("' \\xe9' begins with a space"), HasSubstr("another name")));
  EXPECT_EQ(data::read_label_names(path), names);
}

TEST_F(LabelNamesHook, WarnsOfALayerThatWasTrainedForOtherClasses) {
  RunSpec run = spec();
  run.hooks = {label_names_hook({"daisy", "rose"})};
  run_or_throw(run);
  const auto warnings_of_start = [&](std::vector<std::string> names, bool is_begun_anew = false) {
    RunSpec next = spec();
    next.checkpoint_path = log_dir_;
    next.log_dir = fresh_directory("other_classes");
    next.hooks = {label_names_hook(std::move(names))};
    if (is_begun_anew)
      next.model_fn = [](const Inputs& in, ModeKeys mode) {
        ModelSpec model = constant_slope_model(in, mode);
        model.loss = model.loss + get_variable("head", {}, zeros());
        return model;
      };
    const ScopedConfiguration configuration({"--threads=1", "--log_level=warning"});
    testing::internal::CaptureStderr();
    run_or_throw(next);
    return testing::internal::GetCapturedStderr();
  };
  for (const auto& names : {std::vector<std::string>{"cat", "dog"}, {"rose", "daisy"}})
    EXPECT_THAT(
        warnings_of_start(names),
        testing::AllOf(HasSubstr("was trained for other classes"), HasSubstr(log_dir_ + "/labels.txt"),
                       HasSubstr("label 0: 'daisy' before, '" + names[0] + "' now")));
  EXPECT_EQ(warnings_of_start({"daisy", "rose"}), "");
  EXPECT_EQ(warnings_of_start({"cat", "dog", "horse"}), "") << "no layer fits both";
  EXPECT_THAT(warnings_of_start({"cat", "dog"}, true), testing::Not(HasSubstr("other classes")));
  write_file_atomically(log_dir_ + "/labels.txt", "daisy\nrose\n");  // somebody's own list
  EXPECT_THAT(warnings_of_start({"cat", "dog"}), HasSubstr("is not known"));
}

TEST_F(LabelNamesHook, ComparesInEvaluationsAndPredictions) {
  RunSpec run = spec();
  run.hooks = {label_names_hook({"daisy", "rose"})};
  run.model_fn = [](const Inputs& in, ModeKeys mode) {
    ModelSpec model = constant_slope_model(in, mode);
    model.output_info = {{"x", in[0]}};
    return model;
  };
  run_or_throw(run);
  run.output_fn = [](std::span<const OutputBatch>) {};
  const std::string checkpoint = log_dir_ + "/checkpoint-" + std::to_string(*run.max_number_of_steps);
  for (const ModeKeys mode : {ModeKeys::EVAL, ModeKeys::PREDICT}) {
    run.run_mode = mode;
    run.log_dir = log_dir_;
    run.checkpoint_path = "";
    run.hooks = {label_names_hook({"daisy", "rose"})};
    run_or_throw(run);
    run.hooks = {label_names_hook({"rose", "daisy"})};
    EXPECT_THAT(message_of_run<DataError>(run), HasSubstr("label 0: 'daisy' before, 'rose' now"));
    run.log_dir = "";  // the checkpoint alone
    run.checkpoint_path = checkpoint;
    EXPECT_THAT(message_of_run<DataError>(run), HasSubstr("label 0: 'daisy' before, 'rose' now"));
    run.hooks = {label_names_hook({})};  // data without labels
    run_or_throw(run);
    EXPECT_EQ(read_file(log_dir_ + "/labels.txt"), "0: daisy\n1: rose\n");
  }
}

}  // namespace
}  // namespace mox
