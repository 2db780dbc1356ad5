#include "moxing/image_sets/label_names_hook.h"

#include <gmock/gmock-more-matchers.h>

#include <algorithm>
#include <filesystem>

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

// A checkpoint that was taken out of its log_dir, or whose labels.txt is lost, still says what
// its numbers mean.
TEST_F(LabelNamesHook, ACheckpointKeepsTheNames) {
  RunSpec run = spec();
  run.hooks = {label_names_hook({"daisy", "rose"})};
  run_or_throw(run);
  const std::string moved = fresh_directory("moved") + "/checkpoint-4";
  std::filesystem::create_directories(std::filesystem::path(moved).parent_path());
  std::filesystem::copy(log_dir_ + "/checkpoint-4", moved, std::filesystem::copy_options::recursive);
  EXPECT_EQ(kept_label_names(moved), (std::vector<std::string>{"daisy", "rose"}));
  const auto use = [&](ModeKeys mode, const std::string& log_dir, const std::string& checkpoint,
                       std::vector<std::string> names) {
    RunSpec next = spec();
    next.model_fn = [](const Inputs& in, ModeKeys mode) {
      ModelSpec model = constant_slope_model(in, mode);
      model.output_info = {{"x", in[0]}};
      return model;
    };
    next.output_fn = [](std::span<const OutputBatch>) {};
    next.run_mode = mode;
    next.log_dir = log_dir;
    next.checkpoint_path = checkpoint;
    next.max_number_of_steps = 8;
    next.hooks = {label_names_hook(std::move(names))};
    const ScopedConfiguration configuration({"--threads=1", "--log_level=warning"});
    testing::internal::CaptureStderr();
    const std::string error = message_of_run<DataError>(next);
    return error + testing::internal::GetCapturedStderr();
  };
  const auto without_error = [&](ModeKeys mode, const std::string& checkpoint,
                                 std::vector<std::string> names) {
    RunSpec next = spec();
    next.run_mode = mode;
    next.log_dir = mode == ModeKeys::TRAIN ? fresh_directory("next") : "";
    next.checkpoint_path = checkpoint;
    next.hooks = {label_names_hook(std::move(names))};
    const ScopedConfiguration configuration({"--threads=1", "--log_level=warning"});
    testing::internal::CaptureStderr();
    run_or_throw(next);
    return testing::internal::GetCapturedStderr();
  };
  for (const ModeKeys mode : {ModeKeys::EVAL, ModeKeys::PREDICT})
    EXPECT_THAT(use(mode, "", moved, {"daisy", "tulip"}),
                testing::AllOf(HasSubstr(moved), HasSubstr("label 1: 'rose' before, 'tulip' now")));
  EXPECT_EQ(without_error(ModeKeys::EVAL, moved, {"daisy", "rose"}), "");
  EXPECT_THAT(without_error(ModeKeys::TRAIN, moved, {"cat", "dog"}),
              testing::AllOf(HasSubstr("was trained for other classes"), HasSubstr("'daisy' before")));
  std::filesystem::remove(log_dir_ + "/labels.txt");
  for (const ModeKeys mode : {ModeKeys::TRAIN, ModeKeys::EVAL})
    EXPECT_THAT(use(mode, log_dir_, "", {"rose", "daisy"}), HasSubstr("label 0: 'daisy' before, 'rose' now"));
}

// A labels.txt that lies beside a checkpoint and is not its own.
TEST_F(LabelNamesHook, AListAndACheckpointMustNotContradictEachOther) {
  RunSpec run = spec();
  const std::vector<std::string> trained{"ant", "bee", "cat"};
  run.hooks = {label_names_hook(trained)};
  run_or_throw(run);
  const std::string checkpoint = log_dir_ + "/checkpoint-4", list = log_dir_ + "/labels.txt";
  const auto names_with = [&](const std::vector<std::string>& names) {
    data::write_label_names(list, names);
    return trained_label_names(checkpoint, "").value().names;
  };
  for (const std::vector<std::string>& names : {std::vector<std::string>{"bee", "cat", "ant"},
                                                {"ant", "bee", "dog"},
                                                {"ant", "bee"},
                                                {"dog", "emu"}}) {
    const std::string said = message_of<DataError>([&] { names_with(names); });
    EXPECT_THAT(said, testing::AllOf(HasSubstr(list), HasSubstr(checkpoint), HasSubstr("ant, bee, cat"),
                                     HasSubstr("take it away")));
    for (const ModeKeys mode : {ModeKeys::EVAL, ModeKeys::TRAIN}) {
      RunSpec next = spec();
      next.run_mode = mode;
      next.max_number_of_steps = 8;
      next.hooks = {label_names_hook(names)};  // the data is as the list says
      EXPECT_THAT(message_of_run<DataError>(next), HasSubstr("first difference is label")) << names[0];
    }
    EXPECT_THAT(message_of<DataError>([&] { trained_label_names("", log_dir_); }), HasSubstr(list));
  }
  EXPECT_EQ(names_with(trained), trained);
  // Other names for all of them, as in another language, are taken, which each run says once, and numbers say
  // nothing else.
  for (int start = 0; start < 2; ++start) {
    const ScopedConfiguration configuration({"--threads=1", "--log_level=warning"});
    testing::internal::CaptureStderr();
    for (int call = 0; call < 2; ++call) EXPECT_EQ(names_with({"x", "y", "z"})[0], "x");
    EXPECT_EQ(names_with({"0", "1", "2"}), trained);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_THAT(said, testing::AllOf(HasSubstr(list), HasSubstr("ant, bee, cat"), HasSubstr("x, y, z")));
    EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
  }
  std::filesystem::remove(list);
  EXPECT_EQ(trained_label_names(checkpoint, "").value().names, trained);
  EXPECT_EQ(trained_label_names("", log_dir_).value().names, trained);
  EXPECT_FALSE(trained_label_names("", fresh_directory("none")).has_value());
}

TEST_F(LabelNamesHook, AListMayNameWhatACheckpointNumbers) {
  RunSpec run = spec();
  run.hooks = {label_names_hook({"0", "1"})};
  run_or_throw(run);
  const std::string list = log_dir_ + "/labels.txt";
  data::write_label_names(list, {"ant", "bee"});
  EXPECT_EQ(trained_label_names(log_dir_, "").value().place, list);
  data::write_label_names(list, {"ant", "bee", "cat"});
  EXPECT_THROW(trained_label_names(log_dir_, ""), DataError);
}

// As programs of before have written them.
TEST_F(LabelNamesHook, WarnsWhereNothingSaysWhatTheNumbersMean) {
  RunSpec run = spec();
  run_or_throw(run);
  EXPECT_TRUE(kept_label_names(log_dir_).empty());
  const auto said = [&](std::vector<std::string> names) {
    RunSpec next = spec();
    next.run_mode = ModeKeys::EVAL;
    next.hooks = {label_names_hook(std::move(names))};
    const ScopedConfiguration configuration({"--threads=1", "--log_level=warning"});
    testing::internal::CaptureStderr();
    run_or_throw(next);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(said({"daisy", "rose"}),
              testing::AllOf(HasSubstr(log_dir_ + "/checkpoint-4"), HasSubstr("is not known"),
                             HasSubstr("daisy, rose"), HasSubstr("Put the labels.txt")));
  EXPECT_EQ(said({"0", "1"}), "") << "the numbers are the names";
}

TEST_F(LabelNamesHook, NumbersAreKeptAsHowManyThereAre) {
  RunSpec run = spec();
  run.hooks = {label_names_hook({"0", "1", "2"})};
  run_or_throw(run);
  EXPECT_EQ(kept_label_names(log_dir_), (std::vector<std::string>{"0", "1", "2"}));
  EXPECT_THAT(load_checkpoint(log_dir_).state.at("hooks"), HasSubstr(R"("label_names":"3")"));
  log_dir_ = fresh_directory("bytes");
  run = spec();
  run.hooks = {label_names_hook({"\xe9", "e"})};  // no UTF-8
  run_or_throw(run);
  EXPECT_TRUE(kept_label_names(log_dir_).empty());
}

TEST(KeptLabelNames, OfAUrlAreNotPassedOver) {
  EXPECT_THROW(kept_label_names("s3://bucket/run"), InvalidArgument);
}

}  // namespace
}  // namespace mox
