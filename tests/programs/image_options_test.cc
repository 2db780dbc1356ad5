// Options of the pre-set job on images that would do nothing, and of which it says so.
#include <utility>

#include "tests/programs/image_classifier_test.h"

namespace mox {
namespace {

using ImageOptions = ImageClassifierTest;

// An option that is passed over looks like one that counts.
TEST_F(ImageOptions, ThatWouldDoNothingAreRefused) {
  write_images();
  const struct {
    std::string option, says;
  } refused[] = {{"--data.num_classes=7", "data.num_classes is '7' (command line), and has no effect"},
                 {"--data.label_offset=1", "for tfrecord, npz, csv"},
                 {"--data.csv_maximum=1", "it is for csv"},
                 {"--pretraining.epochs=2", "pretraining.image_size is 0"},
                 {"--pretraining.epochs=-1", "at least 0, it is -1"},
                 {"--data.cache_gigabytes=-1", "0 to 1e9, it is -1"},
                 {"--data.cache_gigabytes=1e300", "0 to 1e9, it is 1e+300"},
                 {"--data.train_split=", "data.train_split is empty: expected the name of the part"},
                 {"--model.image_size=1", "are 1 x 1 pixels, cifarnet is made for 32. If they are too small"},
                 {"--augmentation.mix_up=-1", "alpha must be in (0, 1]"},
                 {"--augmentation.cut_out=32", "images are 32 pixels wide"},
                 {"--augmentation.colour_jitter=0.4", "is '0.4' (command line), expected are four"},
                 {"--augmentation.colour_jitter=0.4,0.4,0.4,0.1,0.2", "expected are four numbers"},
                 {"--augmentation.recipe=resnt_v1_50", "resnet_v1_50"},
                 {"--augmentation.recipe=my_vgg_16", "vgg_16"}};
  for (const auto& [option, says] : refused) {
    SCOPED_TRACE(option);
    expect_error(run_process(job({option})), {says}, 2);
  }
}

// Before any data is read.
TEST_F(ImageOptions, OfOtherFormatsAreRefused) {
  const Words augmentation{"--augmentation.recipe=lenet", "--augmentation.min_area=0.5",
                           "--augmentation.colour_jitter=0,0.4,0,0", "--augmentation.cut_out=8"};
  const Words files{
      "--augmentation.fast_decode", "--data.cache=memory",          "--data.cache_content=resized",
      "--data.cache_gigabytes=1",   "--data.cache_directory=cache", "--data.remove_cache_on_finish",
      "--data.on_bad_sample=skip",  "--data.max_bad_samples=3",     "--data.max_bad_share=1"};
  std::vector<std::pair<std::string, Words>> refused{
      {"cifar10", files}, {"multilabel_folder", {"--label_smoothing=0.1", "--metrics.per_class"}}};
  for (const char* format : {"npz", "csv", "mnist"}) refused.emplace_back(format, augmentation + files);
  write("train/images/1.jpg", image::encode_jpeg(image::picture(40, 40, 1)));
  write("train/labels/1.jpg.txt", "dark\n");
  for (const auto& [format, options] : refused)
    for (const std::string& option : options) {
      SCOPED_TRACE(format + " " + option);
      const std::string name = option.substr(2, option.find('=') - 2);
      expect_error(run_process(job({"--data.format=" + format, option})),
                   {name + " is '", "(command line), and has no effect on data.format " + format, "Leave it"},
                   2);
    }
  expect_error(run_process(job({"--data.format=mnist", "--data_url=" + data_, "--model.name=lenet"})),
               {"model.image_size is 32 (command line)", "data.format mnist are 28 x 28"}, 2);
  // What is switched off is no mistake.
  const Words off{"--augmentation.cut_out=0", "--data.cache=none", "--data.on_bad_sample=error",
                  "--augmentation.recipe=", "--augmentation.fast_decode=false"};
  expect_success(
      run_process(job(off + Words{"--data.format=mnist", "--data_url=" + data_, "--model.name=lenet",
                                  "--model.image_size=28", "--max_number_of_steps=1"})));
}

TEST_F(ImageOptions, AnAreaIsForRandomResizedCrops) {
  write_images();
  const Words area{"--augmentation.min_area=0.5", "--max_number_of_steps=1"};
  expect_error(run_process(job(area)),
               {"augmentation.min_area is '0.5' (command line)", "recipe of cifarnet", "no random-resized"},
               2);
  expect_success(run_process(job(area + Words{"--augmentation.recipe=resnet_v1_50"})));
}

}  // namespace
}  // namespace mox
