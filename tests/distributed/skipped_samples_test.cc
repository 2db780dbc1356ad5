// Samples that cannot be read are counted over the ranks: a job of several ends where one rank alone would,
// all with one message.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <span>

#include "moxing/checkpoint/checkpoint.h"
#include "moxing/formats/tf_example.h"
#include "moxing/formats/tfrecord.h"
#include "tests/distributed/job.h"
#include "tests/moxing/image/images.h"

namespace mox {
namespace {

using testing::HasSubstr;

constexpr int kOfAClass = 40;  // images

class SkippedOnRanks : public TrainingTest, public testing::WithParamInterface<int> {
 protected:
  // Every other image of class a of `bad_split` cannot be read, if there is one.
  void write_images(const std::string& bad_split) const {
    for (int i = 0; i < kOfAClass; ++i)
      for (const std::string split : {"train", "validation"}) {
        const bool is_bad = i % 2 == 1 && split == bad_split;
        const std::string image = image::encode_jpeg(image::picture(32, 32, static_cast<uint64_t>(i)));
        write(split + "/a/" + std::to_string(100 + i) + ".jpg", is_bad ? "no image" : image);
        write(split + "/b/" + std::to_string(100 + i) + ".jpg", image);
      }
  }

  void write(const std::string& name, const std::string& content) const {
    const std::filesystem::path path = std::filesystem::path(folder_) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
  }

  // 40 records of two classes by turns. Of `bad_split`, those of class 0 that rank 0 takes cannot be read:
  // the ranks take the batches by turns, so that these are half of the class with two ranks, a
  // quarter with four.
  void write_records(const std::string& bad_split) const {
    for (const std::string split : {"train", "validation"}) {
      std::filesystem::create_directories(folder_);
      data::TfRecordWriter writer(folder_ + "/" + split + "-00000-of-00001");
      for (int i = 0; i < kOfAClass; ++i) {
        const bool is_bad = split == bad_split && i % 2 == 0 && i % 8 < 8 / GetParam();
        const std::string image = image::encode_jpeg(image::picture(32, 32, static_cast<uint64_t>(i)));
        const std::string bytes =
            data::serialize_example({{"image/encoded", std::vector<std::string>{is_bad ? "no image" : image}},
                                     {"image/class/label", std::vector<int64_t>{i % 2}}});
        writer.write(std::as_bytes(std::span(bytes)));
      }
      writer.close();
    }
    write("labels.txt", "0: a\n1: b\n");
  }

  // One pass over the 80 images.
  ProcessResult run(const Words& flags) const {
    const int ranks = GetParam();
    const Words command{"image_classifier",
                        "--data_url=" + folder_,
                        "--train_url=" + log_dir_,
                        "--model.name=cifarnet",
                        "--model.image_size=32",
                        "--batch_size=" + std::to_string(8 / ranks),
                        "--eval_batch_size=" + std::to_string(8 / ranks),
                        "--max_number_of_steps=10",
                        "--save_model_steps=0",
                        "--save_model_secs=0",
                        "--optimizer.learning_rate=0.001",
                        "--data.on_bad_sample=skip",
                        "--log_every_n_steps=0"};
    return Process(job_of(ranks, command + flags)).wait(120);
  }

  static void expect_one_error(const ProcessResult& result, const std::string& text) {
    EXPECT_FALSE(result.timed_out);
    EXPECT_EQ(result.status, 1) << result.err;
    EXPECT_THAT(result.err, HasSubstr(text));
    const size_t first = result.err.find("error: ");
    ASSERT_NE(first, std::string::npos) << result.err;
    EXPECT_EQ(result.err.find("error: ", first + 1), std::string::npos) << result.err;
  }

  const std::string folder_ = fresh("images");
};

// A share of 0.45 are 18 images, of which a rank meets no more than 10 in its part of a pass.
TEST_P(SkippedOnRanks, OfTrainingAreThoseOfAll) {
  write_images("train");
  const ProcessResult result = run({"--data.max_bad_share=0.45"});
  expect_one_error(result, "of the 40 images of class 'a'");
  EXPECT_THAT(result.err, HasSubstr("data.max_bad_share"));
  EXPECT_GT(load_checkpoint(log_dir_).global_step, 0);  // the steps until then are kept
  std::filesystem::remove_all(log_dir_);
  const ProcessResult limited = run({"--data.max_bad_samples=15"});
  expect_one_error(limited, " samples cannot be read, more than the limit of 15");
  std::filesystem::remove_all(log_dir_);
  expect_success(run({}));  // half are allowed
}

TEST_P(SkippedOnRanks, OfEvaluationsAreThoseOfAll) {
  write_images("validation");
  // Before the first step: what an evaluation cannot read is known when its data is made.
  const ProcessResult result = run({"--data.max_bad_share=0.45", "--eval_every_n_steps=5"});
  expect_one_error(result, "of the 40 images of class 'a'");
  EXPECT_FALSE(latest_checkpoint(log_dir_).has_value());
  expect_success(run({"--eval_every_n_steps=5"}));
  expect_one_error(run({"--data.max_bad_share=0.45", "--run_mode=eval"}), "of the 40 images of class 'a'");
  const ProcessResult evaluated = run({"--run_mode=eval", "--metrics.per_class"});
  expect_success(evaluated);
  EXPECT_THAT(evaluated.err, HasSubstr("20 of 80 samples cannot be read and are left out"));
  EXPECT_THAT(evaluated.out, testing::ContainsRegex("  a .* 20\n  b .* 40\n")) << "no neighbour counts";
}

// The classes' sizes are known by reading all records.
TEST_P(SkippedOnRanks, OfRecordsThatOneRankAloneMeets) {
  write_records("validation");
  const Words records{"--data.format=tfrecord"};
  expect_success(run(records + Words{"--max_number_of_steps=5"}));
  const std::string of_class = std::to_string(20 / GetParam()) + " of the 20 images of class 0";
  expect_one_error(run(records + Words{"--run_mode=eval", "--data.max_bad_share=0.2"}), of_class);
  expect_success(run(records + Words{"--run_mode=eval", "--data.max_bad_share=0.55"}));
}

TEST_P(SkippedOnRanks, OfPredictionsAreRefused) {
  write_images("validation");
  expect_success(run({}));
  const std::string file = fresh("predictions") + ".csv";
  const Words predict{"--run_mode=predict", "--predictions=" + file};
  const ProcessResult skipping = run(predict);
  EXPECT_EQ(skipping.status, 2) << skipping.err;
  EXPECT_THAT(skipping.err, HasSubstr("a bad image cannot be skipped"));
  expect_one_error(run(predict + Words{"--data.on_bad_sample=error"}), "no JPEG or PNG image");
  EXPECT_FALSE(std::filesystem::exists(file));
}

INSTANTIATE_TEST_SUITE_P(Ranks, SkippedOnRanks, testing::Values(2, 4), testing::PrintToStringParamName());

}  // namespace
}  // namespace mox
