// The job tabular as processes, on one rank and on two: one answer, and no wrong one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "moxing/checkpoint/best_checkpoint.h"
#include "moxing/checkpoint/checkpoint.h"
#include "runtime/base/file.h"
#include "tests/distributed/job.h"

namespace mox {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class Tabular : public TrainingTest {
 protected:
  Tabular() {
    std::filesystem::create_directories(folder_);
    write("train.csv", rows(0, 200));
    write(
        "predict.csv",
        "kind,note,size,name\nkind 1,\"a, 1\",50,first\nkind 0,\"a, 0\",,second\nkind 2,\"a, 0\",7,third\n");
  }
  static std::string rows(int first, int last, int dearer = 0) {
    std::string text = "name,size,kind,note,price,fair\n";
    for (int i = first; i < last; ++i) {
      const int size = i * 37 % 101, kind = i * 13 % 3;
      const int price = 10 * size + 400 * kind + dearer;
      text += "row " + std::to_string(i) + "," + (i % 17 ? std::to_string(size) : "NA") + ",kind " +
              std::to_string(kind) + ",\"a, " + std::to_string(i % 2) + "\"," + std::to_string(price) +
              (price > 900 ? ",no\n" : ",yes\n");
    }
    return text;
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << text;
  }
  Words job(const Words& flags) const {
    return Words{"tabular",
                 "--data_url=" + folder_,
                 "--train_url=" + log_dir_,
                 "--data.id=name",
                 "--batch_size=8",
                 "--eval_batch_size=16",
                 "--max_epochs=20",
                 "--log_every_n_steps=0",
                 "--threads=1",
                 "--num_devices=1",
                 "--log_level=warning",
                 "--logical_replicas=2",
                 "--model.hidden=16",
                 "--optimizer.learning_rate=0.01"} +
           flags;
  }
  Words regression(const Words& flags = {}) const {
    return job(Words{"--data.target=price", "--data.task=regression", "--data.ignored=fair"} + flags);
  }
  const std::string folder_ = fresh("table");
};

TEST_F(Tabular, OneAnswerOnOneRankAndOnTwo) {
  std::string tests, predictions;
  for (const int ranks : {1, 2}) {
    std::filesystem::remove_all(log_dir_);
    const ProcessResult trained = run_process(job_of(ranks, regression()));
    expect_success(trained);
    EXPECT_THAT(trained.out, AllOf(HasSubstr("test r2: 0.9"), HasSubstr("test mae: ")));
    const std::string file = fresh("predictions") + ".csv";
    expect_success(run_process(job_of(ranks, regression({"--run_mode=predict", "--predictions=" + file}))));
    const std::string text = read_file(file);
    EXPECT_THAT(text, AllOf(StartsWith("sample,file,prediction\n0,first,"), HasSubstr("\n2,third,")));
    if (ranks == 1) {
      tests = test_lines(trained.out);
      predictions = text;
    }
    EXPECT_EQ(test_lines(trained.out), tests);
    EXPECT_EQ(text, predictions);
    const ProcessResult evaluated = run_process(job_of(ranks, regression({"--run_mode=eval"})));
    expect_success(evaluated);
    EXPECT_EQ(test_lines(evaluated.out), tests);
  }
}

TEST_F(Tabular, LearnsClassesAndWritesWhatTheyMean) {
  const ProcessResult result = run_process(job({"--data.target=fair", "--data.ignored=price"}));
  expect_success(result);
  EXPECT_THAT(result.out, testing::ContainsRegex("test accuracy: (1|0.9)"));
  EXPECT_EQ(read_file(log_dir_ + "/labels.txt"), "0: no\n1: yes\n");
  const std::string file = fresh("predictions") + ".csv";
  expect_success(run_process(job({"--run_mode=predict", "--predictions=" + file})));
  EXPECT_THAT(read_file(file), StartsWith("sample,file,class,probabilities/0,probabilities/1\n0,first,"));
}

TEST_F(Tabular, PredictionRefusesWhatTrainingDidNotHave) {
  expect_success(run_process(regression({"--max_epochs=1"})));
  const auto predict = [&](const std::string& text, const Words& flags = {}, int ranks = 1) {
    write("predict.csv", text);
    return run_process(job_of(
        ranks, regression(Words{"--run_mode=predict", "--predictions=" + folder_ + "/p.csv"} + flags)));
  };
  const std::string unknown = "name,size,kind,note\na,1,kind 7,\"a, 1\"\n";
  expect_error(predict(unknown), {"line 2, column 'kind'", "'kind 7' is none of the 3 categories"});
  expect_error(predict("name,size,kind\na,1,kind 1\n"), {"has no column 'note'"}, 2);
  expect_error(predict("name,size,kind,note\na,large,kind 1,\"a, 1\"\n"),
               {"column 'size': 'large' is no number"});
  expect_error(predict("size,kind,note\n1,kind 1,\"a, 1\"\n"), {"has no column 'name'"}, 2);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/p.csv"));
  const ProcessResult taken = predict(unknown, {"--data.unseen=missing"});
  expect_success(taken);
  EXPECT_THAT(taken.err, HasSubstr("1 value of column 'kind' was not in the training part"));
  const ProcessResult of_two = predict(unknown, {}, 2);
  EXPECT_EQ(of_two.status, 1);
  EXPECT_THAT(of_two.err, HasSubstr("'kind 7' is none of the 3 categories"));
}

TEST_F(Tabular, EvaluationMeasuresNoRowThatWasLearnt) {
  expect_success(run_process(regression({"--max_epochs=1"})));
  expect_error(run_process(regression({"--run_mode=eval", "--data.split_seed=2"})),
               {"chosen by seed 1", "held back from", "may have learnt some of them"}, 2);
  write("train.csv", read_file(folder_ + "/train.csv") + "new,1,kind 1,\"a, 1\",2,yes\n");
  expect_error(run_process(regression({"--run_mode=eval"})), {"160 of the 200 rows"}, 2);
  expect_error(run_process(regression({"--max_epochs=2"})), {"160 of the 200 rows"}, 2);
  write("test.csv", "name,size,kind,note,price\na,1,kind 1,\"a, 1\",400\nb,2,kind 2,\"a, 0\",800\n");
  expect_success(run_process(regression({"--run_mode=eval", "--data.eval_file=test.csv"})));
}

TEST_F(Tabular, SaysWhatIsMissingInItsOptions) {
  expect_error(run_process(job({})), {"data.target must name the column"}, 2);
  expect_error(run_process(job({"--data.target=prize"})), {"no column 'prize'", "is 'price' meant?"}, 2);
  expect_error(run_process(regression({"--run_mode=predict"})), {"train first"}, 2);
  expect_error(run_process(job({"--data.target=price", "--data.task=regress"})),
               {"regression or classification"}, 2);
}

// What was the best on the former rows would be that of the run for ever.
TEST_F(Tabular, OnOtherRowsToEvaluateTheComparisonBeginsAnewOnEachRank) {
  write("eval.csv", rows(200, 240));
  write("dearer.csv", rows(200, 240, 2000));
  const Words compares{"--eval_every_n_epochs=1", "--keep_best.metric=loss", "--keep_best.restore",
                       "--early_stopping.metric=loss", "--early_stopping.patience=5"};
  for (const int ranks : {1, 2}) {
    SCOPED_TRACE(ranks);
    std::filesystem::remove_all(log_dir_);
    const auto train = [&](const Words& flags) {
      ProcessResult result = run_process(job_of(ranks, regression(compares + flags)));
      expect_success(result);
      return result;
    };
    train({"--data.eval_file=eval.csv", "--max_epochs=6"});
    const int64_t before = load_checkpoint(log_dir_).global_step;
    const ProcessResult result = train({"--data.eval_file=dearer.csv", "--max_epochs=8"});
    const std::string warning = "the data of input_fn(eval) are others";
    EXPECT_THAT(result.err, HasSubstr(warning));
    EXPECT_EQ(result.err.find(warning), result.err.rfind(warning)) << "once: " << result.err;
    EXPECT_GT(load_checkpoint(best_directory(log_dir_)).global_step, before);
    EXPECT_GT(load_checkpoint(log_dir_).global_step, before);
    EXPECT_THAT(train({"--data.eval_file=dearer.csv", "--max_epochs=9"}).err, Not(HasSubstr("others")));
  }
}

}  // namespace
}  // namespace mox
