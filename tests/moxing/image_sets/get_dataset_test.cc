#include "moxing/image_sets/get_dataset.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include "moxing/image_sets/data_augmentation.h"
#include "runtime/base/error.h"
#include "tests/support/temporary_directory.h"

namespace mox {
namespace {

using testing::HasSubstr;

TEST(GetDataset, KnowsTheSetsByName) {
  EXPECT_EQ(get_dataset_meta("cifar100").num_classes, 100);
  EXPECT_EQ(get_dataset_meta("mnist").train_samples, 60000);
  EXPECT_THAT(message_of<NotFound>([] { get_dataset_meta("cifar"); }),
              HasSubstr("mnist, fashion_mnist, cifar10"));
  EXPECT_THAT(message_of<InvalidArgument>([] { get_dataset("cifar10", "t10k", "/none"); }),
              HasSubstr("train, test"));
  EXPECT_THAT(message_of<NotFound>([] { get_dataset("flowers", "train", "/none"); }),
              HasSubstr("/none/train-*"));
}

TEST(GetDataset, ReadsFashionMnist) {
  const Dataset dataset = get_dataset("fashion_mnist", "test", "/usr/share/datasets/fashion-mnist");
  EXPECT_EQ(dataset.cardinality(), 10000);
  EXPECT_EQ(dataset.signature()[0].shape, (Shape{1, 28, 28}));
}

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
