// Well-known data sets by name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "moxing/image_sets/image_options.h"
#include "runtime/base/source_location.h"
#include "runtime/data/dataset.h"

namespace mox {

struct DatasetMeta {
  std::string name;
  int64_t num_classes = 0;
  int64_t height = 0, width = 0, channels = 0;  // 0: images of many sizes
  int64_t train_samples = 0, eval_samples = 0;  // of the published set
  std::vector<std::string> splits;              // that get_dataset takes
};

// mnist, fashion_mnist, cifar10, cifar100, imagenet, flowers. Throws NotFound, naming these,
// for another name.
DatasetMeta get_dataset_meta(std::string_view name);

// Elements {image, label} with image [channels, height, width] of options.dtype and label int32[]; see the
// readers:
//   mnist, fashion_mnist   data::mnist, in [0, 1], float32, shape [1, 28, 28]; `options` has no effect
//   cifar10, cifar100      data::cifar10 and data::cifar100, with options.augmentation (32 x 32 as it comes)
//                          and dtype
//   imagenet, flowers      DIRECTORY/SPLIT/ as an image folder, or DIRECTORY/SPLIT-* as TFRecord files.
//                          Labels of a validation folder are the numbers of the classes in
//                          DIRECTORY/train/, if that is there, also where it lacks some of them
// Throws as get_dataset_meta and the readers, InvalidArgument for an unknown split, NotFound where neither
// form is in the directory, and DataError for a validation folder that has neither DIRECTORY/train/ nor a
// labels.txt to number its classes, and another number of them than the published set.
Dataset get_dataset(std::string_view name, std::string_view split, const std::string& directory,
                    const data::ImageOptions& options = {}, SourceLocation where = SourceLocation::current());

}  // namespace mox
