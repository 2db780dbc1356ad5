// Flags and YAML files as a user gets them wrong.
#include <filesystem>

#include "runtime/base/file.h"
#include "tests/programs/training.h"

namespace mox {
namespace {

using testing::HasSubstr;
constexpr int kRefused = 2;

class Configuration : public TrainingTest {
 protected:
  // A YAML file of this content, given to the program; nothing may be written to log_dir.
  void expect_refused(const std::string& yaml, const std::vector<std::string>& says) {
    make_directories(folder_);
    const std::string path = folder_ + "/run.yaml";
    write_file_atomically(path, yaml);
    expect_error(run_process({"fashion_lenet", "--config=" + path, "--train_url=" + log_dir_}), says,
                 kRefused);
    EXPECT_FALSE(std::filesystem::exists(log_dir_));
  }
  void expect_flag_refused(const std::string& flag, const std::vector<std::string>& says) {
    expect_error(run_process({"mnist_softmax", "--train_url=" + log_dir_, flag}), says, kRefused);
    EXPECT_FALSE(std::filesystem::exists(log_dir_));
  }
  const std::string folder_ = fresh("configuration");
};

TEST_F(Configuration, UnknownKeyIsNamedWithItsLineAndTheNearest) {
  expect_refused("data_url: x\nbatch_sise: 3\n", {"run.yaml:2: unknown key 'batch_sise'", "batch_size"});
  expect_refused("optimizer:\n  name: sgd\n  learning_rat: 3\n",
                 {"run.yaml:3: unknown key 'optimizer.learning_rat'", "optimizer.learning_rate"});
  expect_refused("drop_out: 0.3\n", {"run.yaml:1: unknown key 'drop_out'", "dropout"});
}

TEST_F(Configuration, WhatATerminalWouldObeyIsShown) {
  expect_refused("batch_size: \"\\e[2Jmany\"\n", {"run.yaml:1: batch_size expects", "\\x1b[2Jmany"});
}

TEST_F(Configuration, WrongTypeIsNamedWithItsLine) {
  expect_refused("batch_size: many\n", {"run.yaml:1: batch_size expects", "many"});
  expect_refused("\nbatch_size: 1.5\n", {"run.yaml:2: batch_size expects", "1.5"});
  expect_refused("batch_size: 0\n", {"run.yaml:1", "batch_size", "0"});
  expect_refused("auto_batch: 3\n", {"run.yaml:1: auto_batch expects true or false"});
  expect_refused("dropout: [1, 2]\n", {"run.yaml:1: dropout expects"});
  expect_refused("inter_mode: evil\n", {"run.yaml:1", "inter_mode", "eval", "evil"});
}

TEST_F(Configuration, MalformedAndMissingFilesAreRefused) {
  expect_refused("batch_size: 3\n  data_url: [x\n", {"run.yaml:", "not well-formed YAML"});
  expect_refused("batch_size: 3\nbatch_size: 4\n", {"run.yaml:2: 'batch_size' is already given at"});
  expect_refused("just words\n", {"run.yaml:1", "key: value"});
  expect_flag_refused("--config=" + folder_ + "/missing.yaml", {"there is no file", "missing.yaml"});
  expect_flag_refused("--config=/tmp", {"is a directory"});
}

TEST_F(Configuration, FlagsAreRefusedWithTheNearest) {
  expect_flag_refused("--batch-size=3", {"unknown flag '--batch-size'", "--batch_size"});
  expect_flag_refused("--max_number_of_step=3", {"--max_number_of_steps"});
  expect_flag_refused("--batch_size=many", {"batch_size expects", "many"});
  expect_flag_refused("--batch_size", {"needs a value"});
  expect_flag_refused("word", {"'word' belongs to no flag"});
  expect_flag_refused("--optimizer.name=sdg", {"optimizer.name", "sgd", "sdg"});
}

TEST_F(Configuration, HelpAndVersionEndWithStatusZeroAndNothingElse) {
  for (const char* program : {"mnist_softmax", "fashion_lenet"}) {
    const ProcessResult help = run_process({program, "--help"});
    expect_success(help);
    EXPECT_THAT(help.out, HasSubstr("--max_number_of_steps"));
    EXPECT_EQ(help.out.find("--dropout") != std::string::npos, std::string(program) == "fashion_lenet");
    EXPECT_EQ(help.err, "");
    EXPECT_THAT(help.out, HasSubstr("RunSpec"));
    EXPECT_THAT(help.out, HasSubstr("configuration.yaml"));
    const ProcessResult version = run_process({program, "--version"});
    expect_success(version);
    EXPECT_THAT(version.out, HasSubstr("moxing"));
  }
}

TEST_F(Configuration, MissingDataUrlIsSaid) {
  expect_error(run_process({"mnist_softmax", "--train_url=" + log_dir_, "--max_number_of_steps=1"}),
               {"'' is not set", "data_url"}, kRefused);
}

// Found out by the run, not by its options: still nothing has run, and mox launch does not try again.
TEST_F(Configuration, ValuesThatARunRefusesEndWithTheStatusOfOptions) {
  const auto expect_refused = [&](const Words& command, const std::string& says) {
    const ProcessResult result = run_process(command + Words{"--train_url=" + log_dir_});
    EXPECT_EQ(result.status, 2) << result.err;
    EXPECT_THAT(result.err, testing::HasSubstr(says));
  };
  const std::string data = "--data_url=/usr/share/datasets/fashion-mnist";
  expect_refused({"image_classifier", data, "--model.name=resnet_v9_50"}, "resnet_v9_50");
  expect_refused({"fashion_lenet", data, "--optimizer.learning_rate=0.1->"}, "0.1->");
  expect_refused({"fashion_lenet", data, "--log_dir=gs://bucket/out"}, "gs://bucket/out");
  for (const char* follower : {"plateau", "early_stopping"}) {
    const std::string metric = std::string("--") + follower + ".metric=accuracy";
    expect_refused({"fashion_lenet", data, "--max_epochs=1", metric}, "evaluates at its end alone");
    expect_refused({"fashion_lenet", data, "--max_epochs=1", metric, "--inter_mode=none"},
                   "has none: set inter_mode");
  }
  expect_refused({"fashion_lenet", "--data_url=/nowhere"}, "/nowhere");
  for (const char* url : {"gs://bucket/data", "s3://", "s3:/bucket/data"})
    expect_refused({"fashion_lenet", std::string("--data_url=") + url}, url);
}

// What the programs take where nothing else is said.
TEST_F(Configuration, HelpShowsTheDefaultsOfEachProgram) {
  const auto shows = [](const std::string& program, const std::string& flag, const std::string& value) {
    const std::string help = run_process({program, "--help"}).out;
    const size_t begin = help.find("\n  --" + flag);
    ASSERT_NE(begin, std::string::npos) << program << " " << flag;
    std::string entry = help.substr(begin, help.find("\n  --", begin + 1) - begin);
    for (size_t at; (at = entry.find("\n      ")) != std::string::npos;) entry.replace(at, 7, " ");
    EXPECT_THAT(entry, HasSubstr("Default: " + value + ".")) << program;
  };
  for (const char* program : {"fashion_lenet", "mnist_softmax", "cifar_resnet", "image_classifier", "tabular",
                              "dim_reduce_resnet", "cifar_horovod"})
    shows(program, "inter_mode=", "eval");
  shows("fashion_lenet", "batch_size=", "128");
  shows("fashion_lenet", "optimizer.name=", "momentum");
  shows("fashion_lenet", "optimizer.learning_rate=", "0.05");
  shows("mnist_softmax", "max_number_of_steps=", "1000");
  shows("cifar_resnet", "optimizer.learning_rate=", "82:0.1,123:0.01,164:0.001");
  shows("tabular", "optimizer.name=", "adam");
  shows("cifar_horovod", "batch_size=", "100");
}

}  // namespace
}  // namespace mox
