// The two stages of dimension-reduced training as jobs, on small images.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "moxing/checkpoint/checkpoint.h"
#include "runtime/base/file.h"
#include "tests/moxing/image/images.h"
#include "tests/programs/training.h"

namespace mox {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class DimReduceResnet : public TrainingTest {
 protected:
  // Two classes that differ in brightness: six steps of eight in an epoch.
  void write_photographs() const {
    for (int i = 0; i < 48; ++i)
      for (const char* split : {"train", "validation"}) {
        image::Bitmap picture =
            image::picture(24, 24, static_cast<uint64_t>(i) + (split[0] == 't' ? 0 : 100));
        for (uint8_t& value : picture.pixels)
          value = static_cast<uint8_t>(i % 2 ? value / 4 : 255 - value / 4);
        const fs::path path =
            fs::path(folder_) / split / (i % 2 ? "dark" : "light") / (std::to_string(i) + ".jpg");
        fs::create_directories(path.parent_path());
        std::ofstream(path, std::ios::binary) << image::encode_jpeg(picture);
      }
  }
  Words job(const Words& flags) const {
    return Words{"dim_reduce_resnet",        "--data_url=" + folder_,
                 "--model.name=cifarnet",    "--model.image_size=32",
                 "--batch_size=8",           "--loss_scale=1024",
                 "--lr_max=0.002",           "--epoch_size=4",
                 "--boost.dim_reduce=false", "--dim_reduce.n_components=4",
                 "--log_every_n_steps=0",    "--log_level=warning"} +
           flags;
  }
  const std::string folder_ = fresh("photographs");
};

TEST_F(DimReduceResnet, TwoRunsOneStageEach) {
  write_photographs();
  const std::string first = log_dir_ + "/one", second = log_dir_ + "/two";
  const ProcessResult one = run_process(
      job({"--train_url=" + first, "--max_epochs=3", "--snapshots.every_n_steps=3", "--save_model_steps=6"}));
  expect_success(one);
  EXPECT_THAT(one.out, HasSubstr("epoch: 1 step: 6, loss is "));
  EXPECT_THAT(one.out, HasSubstr("epoch: 3 step: 6, loss is "));
  EXPECT_THAT(one.out, testing::ContainsRegex("epoch time: [0-9.]+ ms, per step time: [0-9.]+ ms"));
  EXPECT_THAT(one.out, HasSubstr("test accuracy: "));
  EXPECT_TRUE(fs::exists(first + "/checkpoint-18"));
  EXPECT_TRUE(fs::exists(first + "/snapshots"));
  const ProcessResult two =
      run_process(job({"--train_url=" + second, "--checkpoint_path=" + first, "--max_epochs=1",
                       "--boost.dim_reduce", "--dim_reduce.weight_load_dir=" + first + "/snapshots"}));
  expect_success(two);
  EXPECT_THAT(two.out, HasSubstr("stage 2, in 4 dimensions that explain "));
  EXPECT_TRUE(fs::exists(second + "/pca_mat.npy"));
}

TEST_F(DimReduceResnet, PredictsAFileAndAFolder) {
  write_photographs();
  expect_success(run_process(job({"--train_url=" + log_dir_, "--max_epochs=1"})));
  const std::string answers = log_dir_ + "/answers.csv";
  expect_success(
      run_process(job({"--train_url=" + log_dir_, "--run_mode=predict", "--predictions=" + answers})));
  const std::string rows = read_file(answers);
  EXPECT_THAT(rows, testing::StartsWith("sample,file,class,probabilities/0,probabilities/1\n0,"));
  EXPECT_EQ(std::ranges::count(rows, '\n'), 1 + 48);
  // Of images without labels, from the checkpoint alone.
  const ProcessResult looked =
      run_process({"dim_reduce_resnet", "--train_url=" + log_dir_, "--run_mode=predict",
                   "--predict.images=" + folder_ + "/validation/dark/1.jpg"});
  expect_success(looked);
  EXPECT_THAT(looked.out, testing::ContainsRegex("/dark/1.jpg: (dark|light) 0.[0-9]+, (dark|light) 0"));
}

TEST_F(DimReduceResnet, OneRunOfBothStages) {
  write_photographs();
  const ProcessResult run =
      run_process(job({"--train_url=" + log_dir_, "--max_epochs=4", "--snapshots.every_n_steps=3",
                       "--boost.dim_reduce", "--dim_reduce.from_epoch=3"}));
  expect_success(run);
  EXPECT_THAT(run.out, HasSubstr("stage 2, in 4 dimensions that explain "));
}

// Where a vector had any, this decay would take a good part of it in one step.
TEST_F(DimReduceResnet, DecaysNoScaleAndNoOffset) {
  write_photographs();
  std::vector<Checkpoint> after;
  for (const std::string decay : {"0", "1"}) {
    const std::string run = log_dir_ + "/" + decay;
    expect_success(run_process(job({"--train_url=" + run, "--model.name=resnet_v1_20", "--lr_max=0.1",
                                    "--weight_decay=" + decay, "--max_number_of_steps=1"})));
    after.push_back(load_checkpoint(run));
  }
  int scales = 0;
  ASSERT_EQ(after[0].variables.size(), after[1].variables.size());
  for (size_t i = 0; i < after[0].variables.size(); ++i) {
    const NamedArray &without = after[0].variables[i], &with = after[1].variables[i];
    ASSERT_EQ(with.name, without.name);
    const bool is_kernel = with.value.shape().rank() > 1;
    EXPECT_NE(is_kernel, std::ranges::equal(with.value.as_bytes(), without.value.as_bytes())) << with.name;
    scales += with.name.ends_with("/batch_norm/scale");
  }
  EXPECT_GT(scales, 0);
}

TEST_F(DimReduceResnet, RefusesWhatCannotBeSmoothedOrScheduled) {
  write_photographs();
  expect_error(run_process(job({"--train_url=" + log_dir_, "--max_epochs=1", "--label_smooth_factor=0.5"})),
               {"label_smooth_factor", "2 classes"}, 2);
  expect_error(run_process(job({"--train_url=" + log_dir_, "--lr_decay_mode=exponential"})),
               {"lr_decay_mode is 'exponential'"}, 2);
  expect_error(run_process(job({"--train_url=" + log_dir_, "--max_epochs=5"})),
               {"max_epochs is 5", "epoch_size"}, 2);
}

}  // namespace
}  // namespace mox
