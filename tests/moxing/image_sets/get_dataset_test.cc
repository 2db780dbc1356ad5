#include "moxing/image_sets/get_dataset.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include "moxing/image_sets/image_folder.h"
#include "moxing/image_sets/image_records.h"
#include "runtime/base/error.h"
#include "runtime/data/pipeline.h"
#include "tests/moxing/image/images.h"
#include "tests/support/temporary_directory.h"

namespace mox {
namespace {

using testing::AllOf;
using testing::ElementsAre;
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

// Of a directory with another one beside it that its name would match as a pattern.
TEST(GetDataset, ReadsTheRecordsOfTheDirectoryItIsGiven) {
  TemporaryDirectory directory;
  for (const char* name : {"set/a/0.jpg", "set/b/1.jpg", "set/b/2.jpg"})
    directory.write(name, image::encode_jpeg(image::picture(20, 16)));
  const data::ImageClassificationRaw folder(directory.file("set"));
  const data::ImageOptions options{.augmentation = {.height = 8, .width = 8}};
  for (const char* name : {"tf[1]", "one,two"}) {
    data::convert_image_folder(folder, directory.file(std::string(name) + "/train"), {});
    EXPECT_EQ(get_dataset("flowers", "train", directory.file(name), options).cardinality(), 3) << name;
  }
  directory.write("tf1/train-00000-of-00001", "");
  EXPECT_EQ(get_dataset("flowers", "train", directory.file("tf[1]"), options).cardinality(), 3);
  EXPECT_THAT(message_of<InvalidArgument>(
                  [] { data::image_classification_tfrecord(std::vector<std::string>(), {}); }),
              HasSubstr("no files are given"));
}

std::vector<int32_t> labels_in_order(const Dataset& samples) {
  std::vector<int32_t> labels;
  Pipeline pipeline(samples.batch(1), {});
  for (Batch batch; pipeline.next(&batch);) labels.push_back(batch.components[1].values<int32_t>()[0]);
  return labels;
}

// By the folder alone the others would have the numbers of the classes before them.
TEST(GetDataset, AClassThatValidationLacksDoesNotShiftTheOthers) {
  TemporaryDirectory directory;
  const auto write = [&](const std::string& split, std::initializer_list<const char*> classes) {
    for (const char* name : classes)
      directory.write(split + "/" + name + "/1.jpg", image::encode_jpeg(image::picture(20, 16)));
  };
  const data::ImageOptions options{.augmentation = {.height = 8, .width = 8}};
  const auto validation = [&](const char* of) {
    return get_dataset("flowers", "validation", directory.file(of), options);
  };
  write("set/validation", {"rose", "sunflower"});
  EXPECT_THAT(message_of<DataError>([&] { validation("set"); }),
              AllOf(HasSubstr("has 2 classes and flowers has 5"), HasSubstr("set/train'")));
  write("set/train", {"daisy", "rose", "sunflower"});
  EXPECT_THAT(labels_in_order(get_dataset("flowers", "train", directory.file("set"), options)),
              ElementsAre(0, 1, 2));
  EXPECT_THAT(labels_in_order(validation("set")), ElementsAre(1, 2));
  write("alone/validation", {"a", "b", "c", "d", "e"});
  EXPECT_THAT(labels_in_order(validation("alone")), ElementsAre(0, 1, 2, 3, 4));
  write("listed/validation", {"rose", "sunflower"});
  directory.write("listed/validation/labels.txt", "0: sunflower\n1: rose\n");
  EXPECT_THAT(labels_in_order(validation("listed")), ElementsAre(0, 1));
}

TEST(GetDataset, ReadsFashionMnist) {
  const Dataset dataset = get_dataset("fashion_mnist", "test", "/usr/share/datasets/fashion-mnist");
  EXPECT_EQ(dataset.cardinality(), 10000);
  EXPECT_EQ(dataset.signature()[0].shape, (Shape{1, 28, 28}));
}

}  // namespace
}  // namespace mox
