// The two-stage job on one and two ranks, as its YAMLs say, on small data: the same bits.
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
namespace fs = std::filesystem;

const std::string kYamls = MOX_SOURCE_DIR "/models/dim_reduce_resnet/";

// The photographs, or Fashion-MNIST: the name of the YAMLs' folder.
class DimReduceRanks : public TrainingTest, public testing::WithParamInterface<const char*> {
 protected:
  DimReduceRanks() {
    if (GetParam() == std::string("photographs")) write_photographs();
  }

  void write_photographs() const {
    for (int i = 0; i < 48; ++i)
      for (const char* split : {"train", "validation"}) {
        const fs::path path =
            fs::path(folder_) / split / (i % 2 ? "dark" : "light") / (std::to_string(i) + ".jpg");
        image::Bitmap picture = image::picture(40, 40, static_cast<uint64_t>(i));
        for (uint8_t& value : picture.pixels)
          value = static_cast<uint8_t>(i % 2 ? value / 4 : 255 - value / 4);
        fs::create_directories(path.parent_path());
        std::ofstream(path, std::ios::binary) << image::encode_jpeg(picture);
      }
  }

  // As the YAML says, but for what makes it small. An epoch has three steps of 16 photographs, or five
  // of 60 images.
  ProcessResult run(int ranks, const std::string& yaml, const std::string& log_dir,
                    const Words& flags) const {
    const bool photographs = GetParam() == std::string("photographs");
    Words command{"dim_reduce_resnet",
                  "--config=" + kYamls + GetParam() + "/" + yaml + ".yaml",
                  "--data_url=" + (photographs ? folder_ : data_),
                  "--train_url=" + log_dir,
                  photographs ? "--batch_size=8" : "--batch_size=30",
                  "--lr_max=0.01",
                  "--logical_replicas=2",
                  "--threads=2",
                  "--log_level=warning"};
    if (photographs) command.push_back("--model.image_size=32");
    if (yaml != "stage_one") command.push_back("--dim_reduce.n_components=3");
    return run_process(job_of(ranks, command + flags));
  }

  const std::string folder_ = fresh("photographs");
};

TEST_P(DimReduceRanks, BothStagesAreTheSameOnTwo) {
  std::string ordinary, boosted;
  for (const int ranks : {1, 2}) {
    SCOPED_TRACE(ranks);
    const std::string name = fresh("of_" + std::to_string(ranks));
    const std::string first = name + "/one", second = name + "/two";
    const ProcessResult one =
        run(ranks, "stage_one", first, {"--max_epochs=2", "--snapshots.every_n_steps=1"});
    expect_success(one);
    EXPECT_THAT(one.out, testing::AllOf(HasSubstr("epoch: 2 step: "), HasSubstr("test accuracy: ")));
    const ProcessResult two = run(ranks, "stage_two", second,
                                  {"--max_epochs=1", "--checkpoint_path=" + first,
                                   "--dim_reduce.weight_load_dir=" + first + "/snapshots"});
    expect_success(two);
    EXPECT_THAT(two.out, HasSubstr("stage 2, in 3 dimensions that explain "));
    if (ordinary.empty()) ordinary = checkpoint_digest(first), boosted = checkpoint_digest(second);
    EXPECT_EQ(checkpoint_digest(first), ordinary);
    EXPECT_EQ(checkpoint_digest(second), boosted);
  }
  EXPECT_NE(ordinary, boosted);
}

TEST_P(DimReduceRanks, TheSingleRunIsTheSameOnTwo) {
  std::string expected;
  for (const int ranks : {1, 2}) {
    SCOPED_TRACE(ranks);
    const std::string log_dir = fresh("single_" + std::to_string(ranks));
    const ProcessResult result =
        run(ranks, "single_run", log_dir,
            {"--max_epochs=3", "--dim_reduce.from_epoch=2", "--snapshots.every_n_steps=1"});
    expect_success(result);
    EXPECT_THAT(result.out, HasSubstr("stage 2, in 3 dimensions that explain "));
    if (expected.empty()) expected = checkpoint_digest(log_dir);
    EXPECT_EQ(checkpoint_digest(log_dir), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Data, DimReduceRanks, testing::Values("photographs", "fashion_mnist"),
                         [](const auto& info) { return std::string(info.param); });

// The YAMLs of ResNet-50 itself, for any folder of images, hold what the job understands.
TEST(DimReduceYamls, AreUnderstoodAsTheyStand) {
  for (const char* yaml : {"", "photographs/", "fashion_mnist/"})
    for (const char* stage : {"stage_one", "stage_two", "single_run"})
      expect_error(run_process({"dim_reduce_resnet", "--config=" + kYamls + yaml + stage + ".yaml",
                                "--data_url=/nowhere/at/all", "--checkpoint_path="}),
                   {"/nowhere/at/all"}, 2);
}

}  // namespace
}  // namespace mox
