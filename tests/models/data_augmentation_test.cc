// The usual augmentation of each network.
#include "models/zoo/data_augmentation.h"

#include <gtest/gtest.h>
#include <models/zoo/older_recipes.h>
#include <models/zoo/zoo.h>

namespace mox {
namespace {

TEST(GetDataAugmentationFn, BindsTheUsualRecipes) {
  using image::Crop;
  EXPECT_EQ(get_data_augmentation_fn("lenet", ModeKeys::TRAIN, 28, 28).channels, 1);
  const auto cifar = get_data_augmentation_fn("resnet_cifar", ModeKeys::TRAIN, 32, 32);
  EXPECT_EQ(cifar.crop, Crop::kPadded);
  EXPECT_EQ(cifar.padding, 4);
  EXPECT_EQ(get_data_augmentation_fn("resnet_cifar", ModeKeys::EVAL, 32, 32).crop, Crop::kNone);
  EXPECT_EQ(get_data_augmentation_fn("resnet_v1_20", ModeKeys::TRAIN, 32, 32).crop, Crop::kPadded);
  const auto vgg = get_data_augmentation_fn("vgg_16", ModeKeys::TRAIN, 224, 224);
  EXPECT_EQ(vgg.crop, Crop::kRandom);
  EXPECT_EQ(vgg.resize_shorter, 256);
  EXPECT_EQ(vgg.resize_shorter_max, 512);
  const auto resnet = get_data_augmentation_fn("resnet_v1_50", ModeKeys::TRAIN, 224, 224);
  EXPECT_EQ(resnet.crop, Crop::kRandomResized);
  EXPECT_TRUE(resnet.flip);
  EXPECT_FALSE(resnet.jitter.any());
  const auto evaluated = get_data_augmentation_fn("resnet_v1_50", ModeKeys::EVAL, 224, 224);
  EXPECT_EQ(evaluated.crop, Crop::kCentre);
  EXPECT_EQ(evaluated.resize_shorter, 256);
  EXPECT_FALSE(evaluated.flip);
  EXPECT_TRUE(get_data_augmentation_fn("inception_v3", ModeKeys::TRAIN, 299, 299).jitter.any());
  EXPECT_THROW(get_data_augmentation_fn("resnet_v1_50", ModeKeys::TRAIN, 0, 224), InvalidArgument);
}

// "mobilenet" ends with "lenet".
TEST(GetDataAugmentationFn, AFamilyIsNamedAtTheBeginning) {
  const auto mobilenet = get_data_augmentation_fn("mobilenet_v2", ModeKeys::TRAIN, 224, 224);
  EXPECT_EQ(mobilenet.channels, 3);
  EXPECT_EQ(mobilenet.crop, image::Crop::kRandomResized);
  EXPECT_TRUE(mobilenet.flip);
  EXPECT_EQ(mobilenet.mean[0], 0.485f);
  for (const char* other : {"my_vgg", "my_alexnet", "my_lenet"})
    EXPECT_EQ(get_data_augmentation_fn(other, ModeKeys::TRAIN, 224, 224).crop, image::Crop::kRandomResized)
        << other;
  EXPECT_EQ(get_data_augmentation_fn("my_inception", ModeKeys::EVAL, 299, 299).mean[0], 0.485f);
}

TEST(GetDataAugmentationFn, GivesEachNetworkItsChannels) {
  for (const std::string& name : model_names()) {
    const ModelMeta meta = get_model_meta(name);
    const auto size = static_cast<int>(meta.image_size);
    for (const ModeKeys mode : {ModeKeys::TRAIN, ModeKeys::EVAL})
      EXPECT_EQ(get_data_augmentation_fn(name, mode, size, size).channels, meta.channels) << name;
  }
}

TEST(RecipeOfOlderRun, IsWhatTheNameMeantThen) {
  EXPECT_EQ(recipe_of_older_run("mobilenet_v1_025"), "lenet");
  EXPECT_EQ(recipe_of_older_run("my_inception_v3"), "inception");
  for (const char* same :
       {"lenet", "cifarnet", "resnet_cifar", "resnet_v1_20", "resnet_v1_50", "vgg_16_bn", "alexnet_v2"})
    EXPECT_EQ(recipe_of_older_run(same), same);
}

}  // namespace
}  // namespace mox
