// The pre-set job on tables as a process: no answer that looks right and is of another question.
#include <filesystem>
#include <fstream>

#include "runtime/base/file.h"
#include "tests/programs/training.h"

namespace mox {
namespace {

using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

class TabularJob : public TrainingTest {
 protected:
  TabularJob() { fs::create_directories(folder_); }
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << content;
  }
  // Two numbers, a word, a target of two classes and one that is a number.
  static std::string rows(int first, int last) {
    std::string text = "a,b,w,y,c\n";
    for (int i = first; i < last; ++i)
      text += std::to_string(i % 7) + "," + std::to_string(i * 5 % 11) + (i % 3 ? ",x" : ",z") +
              (i % 7 > 3 ? ",up" : ",down") + (i % 2 ? ",1\n" : ",2\n");
    return text;
  }
  Words job(const Words& flags) const {
    return Words{"tabular",        "--data_url=" + folder_, "--train_url=" + log_dir_, "--model.hidden=[8]",
                 "--batch_size=8", "--max_epochs=2",        "--log_level=warning"} +
           flags;
  }
  ProcessResult run_job(const Words& flags) const { return run_process(job(flags)); }
  const Words trained_{"--data.target=y", "--data.ignored=c", "--data.categories=w"};
  const std::string folder_ = fresh("tables");
};

TEST_F(TabularJob, OptionsThatContradictTheTrainedModelAreRefused) {
  write("train.csv", rows(0, 60));
  write("predict.csv", rows(0, 5));
  expect_success(run_job(trained_));
  const Words predict{"--run_mode=predict", "--predictions=" + folder_ + "/p.csv"};
  expect_success(run_job(predict));
  expect_success(run_job(predict + trained_ + Words{"--data.task=classification"}));
  const struct {
    std::string option, given, trained;
  } refused[] = {{"--data.target=c", "data.target is 'c' (command line)", "'y'"},
                 {"--data.task=regression", "data.task is 'regression'", "'classification'"},
                 {"--data.id=a", "data.id is 'a'", "without"},
                 {"--data.decimal=,", "data.decimal is ','", "'.'"},
                 {"--data.numbers=w", "data.numbers is 'w'", "categories"},
                 {"--data.categories=a", "data.categories is 'a'", "numbers"},
                 {"--data.categories=w,c", "data.categories is 'w,c'", "'c' is none"},
                 {"--data.ignored=b,c", "data.ignored is 'b,c'", "'b'"},
                 {"--data.missing_words=-1", "data.missing_words is '-1'", "nan"},
                 {"--data.largest_vocabulary=1", "data.largest_vocabulary is '1'", "2 categories"},
                 {"--model.activation=tanh", "model.activation is 'tanh'", "'relu'"},
                 {"--model.hidden=[4]", "model.hidden is '4'", "'8'"}};
  for (const auto& [option, given, trained] : refused)
    for (const Words& mode : {predict, Words{"--run_mode=eval"}, Words{"--max_epochs=4"}}) {
      SCOPED_TRACE(option + " " + mode[0]);
      expect_error(run_job(mode + Words{option}), {given, trained, "eave the option out"}, 2);
    }
  // A training that starts from the checkpoint, too.
  for (const char* option : {"--data.target=c", "--data.task=regression", "--data.ignored=b"})
    expect_error(run_job({"--train_url=" + fresh("warm"), "--checkpoint_path=" + log_dir_, option}),
                 {"data.", "leave the option out"}, 2);
  // What nobody gives is what the model has.
  const ProcessResult plain =
      run_process({"tabular", "--run_mode=eval", "--data_url=" + folder_, "--train_url=" + log_dir_});
  expect_success(plain);
  EXPECT_THAT(plain.out, HasSubstr("test accuracy"));
}

TEST_F(TabularJob, ColumnsThatTheModelDoesNotKnowAreSaid) {
  write("train.csv", rows(0, 60));
  expect_success(run_job(trained_));
  const Words warm{"--train_url=" + fresh("warm"), "--checkpoint_path=" + log_dir_};
  EXPECT_THAT(run_job(warm + trained_).err, Not(HasSubstr("does not know")));
  EXPECT_THAT(run_job(Words{"--train_url=" + fresh("other"), "--checkpoint_path=" + log_dir_}).err,
              HasSubstr("does not know the column 'c'"));
}

TEST_F(TabularJob, AnotherPartThanTheTrainingsIsRefused) {
  write("train.csv", rows(0, 60));
  expect_success(run_job(trained_));
  for (const char* option : {"--data.split_seed=2", "--data.eval_fraction=0.3"})
    expect_error(run_job({"--run_mode=eval", option}), {"held back", "rows of a file"}, 2);
}

TEST_F(TabularJob, EvaluationOnLearntRowsIsSaid) {
  write("train.csv", rows(0, 60));
  write("same.csv", rows(0, 60));
  write("some.csv", rows(10, 30));
  write("other.csv", rows(0, 10) +
                         "9,9,x,up,1\n8,8,z,down,2\n9,8,x,up,1\n9,7,x,up,1\n9,6,x,up,1\n"
                         "9,5,x,up,1\n9,4,x,up,1\n9,3,x,up,1\n9,2,x,up,1\n9,1,x,up,1\n9,0,x,up,1\n");
  const auto said_of = [&](const std::string& file) {
    fs::remove_all(log_dir_);
    const ProcessResult result = run_job(trained_ + Words{"--data.eval_file=" + file});
    expect_success(result);
    return result.err;
  };
  EXPECT_THAT(said_of("train.csv"),
              testing::AllOf(HasSubstr("those of the training"), HasSubstr("train.csv")));
  EXPECT_THAT(said_of("same.csv"), testing::AllOf(HasSubstr("those of the training"),
                                                  HasSubstr("train.csv:2"), HasSubstr("same.csv:2")));
  EXPECT_THAT(said_of("some.csv"),
              testing::AllOf(HasSubstr("20 of the 20 rows"), HasSubstr("some.csv"), HasSubstr("train.csv")));
  EXPECT_THAT(said_of("other.csv"), Not(HasSubstr("how well")));
  // By the checkpoint.
  const Words evaluate{"--run_mode=eval", "--data.eval_file=same.csv"};
  EXPECT_THAT(run_job(evaluate).err, HasSubstr("was trained on"));
  fs::remove_all(log_dir_);
  const ProcessResult held_back = run_job(trained_);
  expect_success(held_back);
  EXPECT_THAT(held_back.err, Not(HasSubstr("how well")));
  EXPECT_THAT(run_job(evaluate).err,
              testing::AllOf(HasSubstr("48 of the 60 rows"), HasSubstr("same.csv' is that file")));
}

TEST_F(TabularJob, ClassesThatTheEvaluationLacksAreSaid) {
  write("train.csv", rows(0, 60));
  write("ups.csv", "a,b,w,y,c\n5,9,x,up,1\n6,3,z,up,2\n");
  const auto said_of = [&](const Words& flags) {
    const ProcessResult result = run_job(flags);
    expect_success(result);
    return result.err;
  };
  EXPECT_THAT(said_of(trained_), Not(HasSubstr("has no row of")));
  const Words other{"--data.eval_file=ups.csv"};
  const auto is_said =
      testing::AllOf(HasSubstr("no row of 1 of the 2 classes ('down')"), HasSubstr("its 2 rows of '"));
  EXPECT_THAT(said_of(Words{"--run_mode=eval"} + other), is_said);
  fs::remove_all(log_dir_);
  EXPECT_THAT(said_of(trained_ + other), is_said);
}

TEST_F(TabularJob, OtherRowsToEvaluateAreNamedWithoutTheTrainings) {
  write("train.csv", rows(0, 60));
  write("other.csv", rows(60, 90));
  expect_success(run_job(trained_));
  fs::remove(folder_ + "/train.csv");
  expect_error(run_job({"--run_mode=eval"}), {"no file '", "train.csv'", "--data.eval_file"}, 2);
  expect_success(run_job({"--run_mode=eval", "--data.eval_file=other.csv"}));
}

TEST_F(TabularJob, ANegativeShareIsNoShare) {
  write("train.csv", rows(0, 60));
  expect_error(run_job(trained_ + Words{"--model.dropout=-0.5"}), {"rate in [0, 1)", "-0.5"}, 2);
}

TEST_F(TabularJob, PredictionsDoNotReplaceWhatTheyAreMadeOf) {
  write("train.csv", rows(0, 60));
  write("predict.csv", rows(0, 5));
  expect_success(run_job(trained_));
  fs::create_symlink(folder_ + "/predict.csv", folder_ + "/link.csv");
  const std::string roundabout = "/../" + fs::path(folder_).filename().string() + "/predict.csv";
  for (const std::string& name : {std::string("/predict.csv"), roundabout, std::string("/link.csv")})
    expect_error(run_job({"--run_mode=predict", "--predictions=" + folder_ + name}),
                 {folder_ + name + "', the file that is predicted from"}, 2);
  EXPECT_EQ(read_file(folder_ + "/predict.csv"), rows(0, 5));
  write("eval.csv", rows(60, 70));
  for (const auto& [name, option] : {std::pair{"/train.csv", "train_file"}, {"/eval.csv", "eval_file"}})
    expect_error(
        run_job({"--run_mode=predict", "--data.eval_file=eval.csv", "--predictions=" + folder_ + name}),
        {folder_ + name + "', the file of --data." + option}, 2);
  EXPECT_EQ(read_file(folder_ + "/train.csv"), rows(0, 60));
}

// Class 2 of the classes 3, 5 and 8 is no 2.
TEST_F(TabularJob, PredictionsHaveTheTargetsOwnNumbers) {
  std::string text = "a,y\n";
  for (int i = 0; i < 60; ++i)
    text += std::to_string(i % 3) + (i % 3 == 0 ? ",3\n" : i % 3 == 1 ? ",5.0\n" : ",8\n");
  write("train.csv", text);
  write("predict.csv", "a\n0\n1\n2\n");
  const std::string file = folder_ + "/p.csv";
  expect_success(run_job({"--data.target=y", "--max_epochs=40", "--optimizer.learning_rate=0.05"}));
  expect_success(run_job({"--run_mode=predict", "--predictions=" + file}));
  EXPECT_THAT(read_file(file), testing::MatchesRegex("sample,file,class,value,probabilities/0.*\n"
                                                     "0,predict.csv:2,0,3,.*\n1,predict.csv:3,1,5,.*\n"
                                                     "2,predict.csv:4,2,8,.*\n"));
}

TEST_F(TabularJob, TargetsThatFloat32DoesNotTellApartAreRefused) {
  const auto trained = [&](const std::string& before, const std::string& behind) {
    std::string text = "a,y\n";
    for (int i = 0; i < 60; ++i)
      text += std::to_string(i % 7) + "," + before + std::to_string(100 + i) + behind + "\n";
    write("train.csv", text);
    std::filesystem::remove_all(log_dir_);
    return run_job({"--data.target=y", "--data.task=regression"});
  };
  expect_error(trained("1700000", ""), {"target 'y'", "mean 1.7e+09", "subtract"});
  expect_error(trained("", "e-40"), {"target 'y'", "scale the column"});
  expect_error(trained("", "e36"), {"target 'y'", "scale the column"});
  expect_success(trained("1700", ""));
}

TEST_F(TabularJob, SizesOfLayersThatCannotBeMeantAreRefused) {
  write("train.csv", rows(0, 60));
  for (const char* hidden : {"100000000000", "9223372036854775807", "8,0", "-3"})
    expect_error(run_job(trained_ + Words{std::string("--model.hidden=[") + hidden + "]"}),
                 {"model.hidden must list units", "from 1 to 1048576"}, 2);
}

// The first two things that are tried with a table of one's own.
TEST_F(TabularJob, SaysThatATableIsNoDirectoryAndANumberNoClass) {
  std::string text = "a,y\n";
  for (int i = 0; i < 60; ++i) text += std::to_string(i) + "," + std::to_string(i * 37 % 61) + ".5\n";
  write("train.csv", text);
  expect_error(run_job({"--data.target=y", "--data_url=" + folder_ + "/train.csv"}),
               {"data_url is the directory of the tables", "is a file", "--data.train_file"}, 2);
  expect_error(run_job({"--data.target=y"}), {"classes of training", "data.task=regression"});
}

TEST_F(TabularJob, SaysWhatIsTheMatterWithAFile) {
  const auto table = [](const std::string& delimiter) {
    std::string text = rows(0, 20);
    for (size_t at; delimiter != "," && (at = text.find(',')) != std::string::npos;)
      text.replace(at, 1, delimiter);
    return text;
  };
  write("train.csv", table("\t"));
  expect_error(run_job({"--data.target=y"}), {"no column 'y'", "the delimiter seems to be a tab"}, 2);
  expect_success(run_job({"--data.target=y", "--data.delimiter=tab"}));
  std::filesystem::remove_all(log_dir_);
  write("train.csv", table(";"));
  expect_error(run_job({"--data.target=y"}), {"no column 'y'", "the delimiter seems to be ';'"}, 2);
  write("train.csv", table(",") + "1,2,M\xfcnchen,up,1\n");
  expect_error(run_job({"--data.target=y"}), {"train.csv', line 22", "0xfc", "Latin-1", "iconv"});
}

}  // namespace
}  // namespace mox
