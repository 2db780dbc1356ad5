// The usual augmentation of each network.
#include "models/zoo/data_augmentation.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace mox
