// Answers and measures of the pre-set job on images that would stand under another's name.
#include <filesystem>
#include <span>

#include "moxing/formats/tf_example.h"
#include "moxing/formats/tfrecord.h"
#include "runtime/base/file.h"
#include "tests/programs/image_classifier_test.h"

namespace mox {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

class ImageAnswers : public ImageClassifierTest {
 protected:
  // The images of the split as they are, damaged or not, which mox convert refuses.
  void write_records(const std::string& split) const {
    fs::create_directories(folder_ + "/records");
    data::TfRecordWriter writer(folder_ + "/records/" + split + "-00000-of-00001");
    for (const int64_t label : {0, 1})
      for (const auto& entry :
           fs::directory_iterator(folder_ + "/" + split + "/" + (label == 0 ? "dark" : "light"))) {
        const std::string bytes = data::serialize_example(
            {{"image/encoded", std::vector<std::string>{read_file(entry.path().string())}},
             {"image/class/label", std::vector<int64_t>{label}}});
        writer.write(std::as_bytes(std::span(bytes)));
      }
    writer.close();
    write("records/labels.txt", "0: dark\n1: light\n");
  }
};

// Beside a file that is cut lies one of the other class.
TEST_F(ImageAnswers, AnImageThatCannotBeReadHasNoSubstituteInEvaluations) {
  write_images();
  write("validation/dark/9.jpg", read_file(folder_ + "/validation/dark/9.jpg").substr(0, 300));
  const Words skip{"--data.on_bad_sample=skip"};
  const ProcessResult trained = run_process(job(skip + Words{"--eval_every_n_steps=9"}));
  expect_success(trained);
  EXPECT_THAT(trained.out, HasSubstr("test accuracy: 1"));
  for (const std::string format : {"image_folder", "tfrecord"}) {
    Words data{"--run_mode=eval", "--metrics.per_class"};
    if (format == "tfrecord") {
      write_records("validation");
      data = data + Words{"--data.format=tfrecord", "--data_url=" + folder_ + "/records"};
    }
    const ProcessResult evaluated = run_process(job(skip + data));
    expect_success(evaluated);
    EXPECT_THAT(evaluated.err, HasSubstr("1 of 24 samples cannot be read and are left out"));
    EXPECT_THAT(evaluated.out, ContainsRegex("  dark .* 11\n  light .* 12\n"));
  }
  const std::string file = fresh("predictions") + ".csv";
  expect_error(run_process(job(skip + Words{"--run_mode=predict", "--predictions=" + file})),
               {"data.on_bad_sample is 'skip' (command line)", "a bad image cannot be skipped"}, 2);
  expect_error(run_process(job({"--run_mode=predict", "--predictions=" + file})), {"dark/9.jpg"});
  EXPECT_FALSE(fs::exists(file));
}

// The classes of a checkpoint are those that it keeps, whatever list lies beside it.
TEST_F(ImageAnswers, AListInAnotherOrderBesideACheckpointIsRefused) {
  write_images();
  expect_success(run_process(job({"--max_epochs=1"})));
  const std::string shelf = fresh("shelf"), checkpoint = latest_checkpoint(log_dir_).value();
  fs::create_directories(shelf);
  fs::copy(checkpoint, shelf / fs::path(checkpoint).filename(), fs::copy_options::recursive);
  const std::string image = folder_ + "/validation/dark/1.jpg";
  const Words use{"--checkpoint_path=" + shelf, "--train_url=" + fresh("none")};
  const Words predict = use + Words{"--run_mode=predict", "--predict.images=" + image};
  const Words evaluate = use + Words{"--run_mode=eval"};
  write_file_atomically(shelf + "/labels.txt", "0: light\n1: dark\n");
  for (const Words& flags : {predict, evaluate})
    expect_error(run_process(job(flags)),
                 {shelf + "/labels.txt", "(light, dark)", "(dark, light)", "take it away"});
  write_file_atomically(shelf + "/labels.txt", "0: dunkel\n1: hell\n");
  const ProcessResult renamed = run_process(job(predict));
  expect_success(renamed);
  EXPECT_THAT(renamed.out, HasSubstr("dunkel "));
  EXPECT_THAT(renamed.err, HasSubstr("its names are taken"));
  fs::remove(shelf + "/labels.txt");
  EXPECT_THAT(run_process(job(predict)).err, Not(HasSubstr("names")));
}

// Two conversions number their classes each for itself.
TEST_F(ImageAnswers, RecordsOfAnotherConversionAreRefused) {
  write_images();
  expect_success(run_process({"mox", "convert", folder_ + "/train", folder_ + "/records/train"}));
  fs::rename(folder_ + "/validation/light", folder_ + "/validation/amber");
  expect_success(run_process({"mox", "convert", folder_ + "/validation", folder_ + "/others/validation"}));
  fs::copy(folder_ + "/others/validation-00000-of-00001", folder_ + "/records/validation-00000-of-00001");
  const Words records{"--data.format=tfrecord", "--data_url=" + folder_ + "/records", "--max_epochs=1"};
  for (const Words& skip : {Words{}, Words{"--data.on_bad_sample=skip"}})
    expect_error(run_process(job(records + skip)),
                 {"validation-00000-of-00001", "it was numbered by another"});
}

TEST_F(ImageAnswers, MissingCellsOfCsvDataAreNoLabels) {
  const auto lines_with = [&](const std::string& label, const std::string& end) {
    std::string lines;
    for (int i = 0; i < 24; ++i) {
      lines += i == 6 ? label : std::to_string(i % 2);
      for (int j = 0; j < 3 * 32 * 32; ++j)
        lines += i == 3 && j == 5 ? std::string(",") : "," + std::to_string((i % 2 ? 40 : 200) + i * j % 40);
      lines += "\n";
    }
    for (const char* split : {"train", "test"}) write(std::string(split) + ".csv", lines + end);
  };
  const Words csv{"--data.format=csv", "--max_epochs=1"}, missing{"--data.csv_missing=0"};
  lines_with("0", "");
  expect_success(run_process(job(csv + missing)));
  for (const char* number : {"nan", "inf"})
    expect_error(run_process(job(csv + Words{std::string("--data.csv_missing=") + number})),
                 {"data.csv_missing must be a finite number"}, 2);
  for (const char* label : {"", "NA"}) {
    lines_with(label, "");
    fs::remove_all(log_dir_);
    expect_error(run_process(job(csv + missing)), {"train.csv': line 7", "no label"});
  }
  lines_with("0", std::string(3 * 32 * 32, ',') + "\n");
  expect_error(run_process(job(csv + missing)), {"train.csv': line 25", "only delimiters"});
  expect_error(run_process(job(csv + missing + Words{"--run_mode=predict"})), {"line 25", "only delimiters"});
}

}  // namespace
}  // namespace mox
