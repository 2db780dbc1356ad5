#include "moxing/image_sets/get_dataset.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace mox
