// Trained models that live in an object store: evaluation, prediction and a training that goes on know of
// them what they know of local ones, on a machine that has nothing of them.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/base/file.h"
#include "tests/programs/image_classifier_test.h"
#include "tests/programs/object_store/store_of_programs.h"

namespace mox {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr const char* kRun = "s3://bucket/run";

class StoredModel : public ImageClassifierTest {
 protected:
  // Every run has a machine of its own.
  ProcessResult elsewhere(const Words& command) const {
    ProcessResult result = run_process(command + Words{"--file.local_directory=" + fresh("machine")});
    expect_success(result);
    return result;
  }
  static std::string checkpoint(const std::string& run, int step) {
    return "--checkpoint_path=" + run + "/checkpoint-" + std::to_string(step);
  }
  // Every file of the checkpoint, as the store has it and as `log_dir` has.
  void expect_same_checkpoint(const std::string& log_dir, int step) const {
    const std::string name = "checkpoint-" + std::to_string(step);
    for (const char* file : {"variables.safetensors", "optimizer.safetensors", "state.json"}) {
      const auto stored = store_.server.content("bucket", "run/" + name + "/" + file);
      ASSERT_TRUE(stored) << file;
      EXPECT_TRUE(*stored == read_file(log_dir + "/" + name + "/" + file)) << file;
    }
  }

  // results.json beside the checkpoint, in the store, has these; and each pass has left a line of metrics.
  void expect_results(const std::vector<std::string>& modes, int passes) const {
    const auto results = store_.server.content("bucket", "run/results.json");
    ASSERT_TRUE(results);
    for (const std::string& mode : modes) EXPECT_THAT(*results, HasSubstr("\"" + mode + "\""));
    const std::string metrics = *store_.server.content("bucket", "run/metrics.jsonl");
    EXPECT_THAT(metrics, HasSubstr("\"loss\""));  // those of the training stay
    int lines = 0;
    for (const char* kind : {"\"prediction\":true", "\"evaluation\":true"})
      for (size_t at = metrics.find(kind); at != std::string::npos; at = metrics.find(kind, at + 1)) ++lines;
    EXPECT_EQ(lines, passes + 1);  // and that at the end of the training
  }

  StoreOfPrograms store_;
};

TEST_F(StoredModel, OfImagesIsUsedAsALocalOne) {
  write_images();
  const auto of = [&](const std::string& run, const Words& flags) {
    return Words{"image_classifier",          "--data_url=" + folder_,           "--batch_size=8",
                 "--optimizer.name=momentum", "--optimizer.learning_rate=0.001", "--save_model_secs=0"} +
           (run.empty() ? Words{} : Words{"--train_url=" + run}) + flags;
  };
  const Words trained{"--model.name=cifarnet", "--model.image_size=32", "--augmentation.recipe=resnet_v1_18",
                      "--max_number_of_steps=6"};
  expect_success(run_process(of(log_dir_, trained)));
  elsewhere(of(kRun, trained));
  // What it was trained with is said by nobody but its checkpoint.
  const Words evaluates{"--run_mode=eval"};
  const Words predicts{"--run_mode=predict", "--predict.images=" + folder_ + "/validation",
                       "--log_level=error"};
  const ProcessResult evaluated = run_process(of(log_dir_, evaluates));
  const ProcessResult predicted = run_process(of(log_dir_, predicts));
  expect_success(evaluated);
  EXPECT_THAT(predicted.out, HasSubstr("0.jpg: "));
  EXPECT_EQ(test_lines(elsewhere(of(kRun, evaluates)).out), test_lines(evaluated.out));
  EXPECT_EQ(elsewhere(of(kRun, predicts)).out, predicted.out);
  expect_results({"eval", "predict"}, 2);
  for (const std::string& named : {std::string("--checkpoint_path=") + kRun, checkpoint(kRun, 6)}) {
    SCOPED_TRACE(named);
    EXPECT_EQ(test_lines(elsewhere(of("", evaluates + Words{named})).out), test_lines(evaluated.out));
    EXPECT_EQ(elsewhere(of("", predicts + Words{named})).out, predicted.out);
  }
  expect_results({"eval", "predict"}, 6);
  const Words goes_on{"--max_number_of_steps=12"};
  expect_success(run_process(of(log_dir_, goes_on)));
  elsewhere(of(kRun, goes_on));
  expect_same_checkpoint(log_dir_, 12);
  // Its variables are where another training starts.
  const Words starts{"--model.name=cifarnet", "--model.image_size=32", "--max_number_of_steps=1"};
  const ProcessResult there =
      elsewhere(of(fresh("there"), starts + Words{std::string("--model.pretrained=") + kRun}));
  const ProcessResult here = run_process(of(fresh("here"), starts + Words{"--model.pretrained=" + log_dir_}));
  EXPECT_EQ(test_lines(there.out), test_lines(here.out));
}

TEST_F(StoredModel, TheBestStateIsTheAnswerOfTheRunThatWantedIt) {
  write_images();
  const auto of = [&](const std::string& run, const Words& flags) {
    return Words{"image_classifier", "--data_url=" + folder_, "--batch_size=8", "--train_url=" + run} + flags;
  };
  // The best evaluation is not the last one: at this rate it gets worse.
  const Words trained{"--model.name=cifarnet",     "--model.image_size=32",
                      "--max_number_of_steps=12",  "--eval_every_n_steps=2",
                      "--keep_best.metric=loss",   "--keep_best.restore=true",
                      "--optimizer.name=momentum", "--optimizer.learning_rate=0.02"};
  expect_success(run_process(of(log_dir_, trained)));
  elsewhere(of(kRun, trained));
  const ProcessResult local = run_process(of(log_dir_, {"--run_mode=eval"}));
  expect_success(local);
  EXPECT_EQ(test_lines(elsewhere(of(kRun, {"--run_mode=eval"})).out), test_lines(local.out));
  EXPECT_EQ(
      test_lines(
          elsewhere(of(fresh("none"), {"--run_mode=eval", std::string("--checkpoint_path=") + kRun})).out),
      test_lines(local.out));
  std::string best;
  for (const std::string& key : store_.server.keys("bucket"))
    if (key.starts_with("run/best/") && key.ends_with("/state.json"))
      best = "s3://bucket/" + key.substr(0, key.rfind('/'));
  ASSERT_NE(best, "");
  EXPECT_EQ(test_lines(elsewhere(of(fresh("none"), {"--run_mode=eval", "--checkpoint_path=" + best})).out),
            test_lines(local.out));
}

TEST_F(StoredModel, OfATableIsUsedAsALocalOne) {
  std::string table = "a,b,w,y\n";
  for (int i = 0; i < 60; ++i)
    table += std::to_string(i % 7) + "," + std::to_string(i * 5 % 11) + (i % 3 ? ",x" : ",z") +
             (i % 7 > 3 ? ",up\n" : ",down\n");
  write("train.csv", table);
  write("predict.csv", table);
  const auto of = [&](const std::string& run, const Words& flags) {
    return Words{"tabular", "--data_url=" + folder_, "--batch_size=8", "--save_model_secs=0"} +
           (run.empty() ? Words{} : Words{"--train_url=" + run}) + flags;
  };
  const Words trained{"--data.target=y", "--model.hidden=[8]", "--max_number_of_steps=6"};
  expect_success(run_process(of(log_dir_, trained)));
  elsewhere(of(kRun, trained));
  const std::string answers = fresh("answers");
  const Words predicts{"--run_mode=predict", "--predictions=" + answers + ".csv"};
  expect_success(run_process(of(log_dir_, predicts)));
  const std::string predicted = read_file(answers + ".csv");
  const ProcessResult evaluated = run_process(of(log_dir_, {"--run_mode=eval"}));
  expect_success(evaluated);
  for (const std::string& named :
       {std::string("--train_url=") + kRun, std::string("--checkpoint_path=") + kRun, checkpoint(kRun, 6)}) {
    SCOPED_TRACE(named);
    EXPECT_EQ(test_lines(elsewhere(of("", {"--run_mode=eval", named})).out), test_lines(evaluated.out));
    fs::remove(answers + ".csv");
    elsewhere(of("", predicts + Words{named}));
    EXPECT_EQ(read_file(answers + ".csv"), predicted);
  }
  const Words goes_on{"--max_number_of_steps=12"};
  expect_success(run_process(of(log_dir_, goes_on)));
  elsewhere(of(kRun, goes_on));
  expect_same_checkpoint(log_dir_, 12);
}

}  // namespace
}  // namespace mox
