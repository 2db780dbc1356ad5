// Samples that cannot be read are counted over the ranks: a job of several ends where one rank alone would,
// all with one message.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "moxing/checkpoint/checkpoint.h"
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
  expect_one_error(result, "of the 40 images of class 0");
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
  const ProcessResult result = run({"--data.max_bad_share=0.45", "--eval_every_n_steps=5"});
  expect_one_error(result, "of the 40 images of class 0");
  EXPECT_EQ(load_checkpoint(log_dir_).global_step, 5);
  expect_one_error(run({"--data.max_bad_share=0.45", "--run_mode=eval"}), "of the 40 images of class 0");
  expect_success(run({"--run_mode=eval"}));
}

INSTANTIATE_TEST_SUITE_P(Ranks, SkippedOnRanks, testing::Values(2, 4), testing::PrintToStringParamName());

}  // namespace
}  // namespace mox
