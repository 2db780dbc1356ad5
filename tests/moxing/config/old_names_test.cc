// Options and values as other frameworks call them.
#include "moxing/config/internal/old_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "moxing/config/flags.h"
#include "moxing/config/options.h"
#include "runtime/base/error.h"
#include "tests/moxing/config/config_testing.h"

namespace mox {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Case {
  const char *option, *theirs, *hint;
};

std::string refusal_of(const Case& value) {
  return message_of<ConfigError>([&] {
    configure({.program = "p", .arguments = {std::string("--") + value.option + "=" + value.theirs}});
  });
}

TEST(OldValues, HaveAHintThatNamesOurs) {
  ScopedConfiguration scope;
  for (const Case& value :
       {Case{"run_mode", "evaluate", "here it is 'eval'"},
        {"run_mode", "TRAIN", "here it is 'train'"},
        {"run_mode", "train_and_evaluate", "here it is 'train': with inter_mode: eval"},
        {"run_mode", "export", "there is none such: programs read checkpoints"},
        {"run_mode", "trian", "the nearest is 'train'"},
        {"precision", "fp16", "here it is 'bf16': the short format here"},
        {"precision", "16", "here it is 'bf16'"},
        {"precision", "float64", "there is none such: no format here is longer than fp32"},
        {"loss_scale", "auto", "here it is 'dynamic'"},
        {"loss_scale", "static", "here it is '1024': the fixed number itself"},
        {"num_devices", "all", "here it is 'auto'"},
        {"variable_update", "distributed_replicated", "here it is 'replicated'"},
        {"variable_update", "parameter-server", "here it is 'parameter_server'"},
        {"variable_update", "horovod", "here it is 'replicated'"},
        {"variable_update", "independent", "there is none such: all replicas train one model"},
        {"wire_dtype", "fp16", "here it is 'bfloat16'"},
        {"boost.mode", "auto", "here it is 'manual': with boost.dim_reduce"},
        {"scale_learning_rate", "true", "here it is 'linear'"},
        {"log_level", "WARN", "here it is 'warning'"},
        {"on_shape_mismatch", "initialize", "here it is 'initialise'"},
        {"recompute", "normalization", "here it is 'normalisation'"},
        {"frozen_batch_norm", "eval", "here it is 'inference'"},
        {"keep_best.mode", "maximize", "here it is 'max'"},
        {"early_stopping.mode", "lower", "here it is 'min'"},
        {"optimizer.name", "Adam", "here it is 'adam'"},
        {"optimizer.name", "gradient_descent", "here it is 'sgd'"},
        {"optimizer.name", "nesterov", "here it is 'momentum': with optimizer.nesterov"}})
    EXPECT_THAT(refusal_of(value), HasSubstr(std::string("got '") + value.theirs + "'; " + value.hint))
        << value.option;
}

TEST(OldValues, ThatNobodyKnowsHaveNone) {
  ScopedConfiguration scope;
  EXPECT_THAT(refusal_of({"run_mode", "fly", ""}), testing::EndsWith("got 'fly'."));
}

// A hint that names what is refused as well would be worse than none.
TEST(OldValues, WhatAHintNamesIsAccepted) {
  const std::vector<std::string> theirs = {
      "evaluate", "fit",     "infer", "fp16",  "float32", "bf16",     "fp32",    "auto",          "static",
      "all",      "horovod", "ps",    "true",  "false",   "warn",     "verbose", "fatal",         "skip",
      "error",    "eval",    "train", "lower", "higher",  "nesterov", "adam_w",  "normalization", "mixed"};
  int hints = 0;
  for (const Option& option : built_in_options())
    for (const std::string& value : theirs) {
      if (option.allowed.empty() || std::ranges::find(option.allowed, value) != option.allowed.end())
        continue;
      const std::string hint = internal::old_value_text(option.name, value, option.allowed);
      const std::string before = "here it is '";
      if (!hint.starts_with(before)) continue;
      const std::string ours = hint.substr(before.size(), hint.find('\'', before.size()) - before.size());
      SCOPED_TRACE(option.name + '=' + value + ": " + hint);
      ++hints;
      ScopedConfiguration scope;
      EXPECT_NO_THROW(configure({.program = "p", .arguments = {"--" + option.name + "=" + ours}}));
    }
  EXPECT_GT(hints, 30);
}

TEST(OldNames, HaveAHintThatNamesOurs) {
  EXPECT_EQ(internal::old_name_text("flag", "--", "train-dir"), "here it is '--train_url'");
  EXPECT_EQ(internal::old_name_text("option", "", "optim.lr"), "here it is 'optimizer.learning_rate'");
  EXPECT_THAT(internal::old_name_text("flag", "--", "ps_hosts"), HasSubstr("no flag is needed for it"));
  EXPECT_EQ(internal::old_name_text("flag", "--", "hidden_units"), "");
  // Of which the nearest names of ours are misleading: --optimizer.rho,
  // --seed, --data.num_classes, --data.format.
  for (const auto& [theirs, ours] :
       std::map<std::string, std::string>{{"optimizer", "optimizer.name"},
                                          {"sched", "optimizer.learning_rate"},
                                          {"num_clones", "num_devices"},
                                          {"trainable_scopes", "freeze"},
                                          {"workers", "data_threads"},
                                          {"save_checkpoint_steps", "save_model_steps"},
                                          {"save_checkpoint_epochs", "save_model_epochs"},
                                          {"evaluate", "run_mode"}})
    EXPECT_THAT(internal::old_name_text("flag", "--", theirs), StartsWith("here it is '--" + ours + "'"))
        << theirs;
  EXPECT_THAT(internal::old_name_text("flag", "--", "data_format"), HasSubstr("images are NCHW"));
}

}  // namespace
}  // namespace mox
