#include "moxing/image_sets/get_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "moxing/file/file.h"
#include "moxing/formats/cifar.h"
#include "moxing/formats/idx_dataset.h"
#include "moxing/image_sets/image_folder.h"
#include "moxing/image_sets/image_records.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace mox {
namespace {

namespace fs = std::filesystem;

const std::vector<DatasetMeta>& known() {
  static const std::vector<DatasetMeta> sets{
      {"mnist", 10, 28, 28, 1, 60000, 10000, {"train", "t10k", "test"}},
      {"fashion_mnist", 10, 28, 28, 1, 60000, 10000, {"train", "t10k", "test"}},
      {"cifar10", 10, 32, 32, 3, 50000, 10000, {"train", "test"}},
      {"cifar100", 100, 32, 32, 3, 50000, 10000, {"train", "test"}},
      {"imagenet", 1000, 0, 0, 3, 1281167, 50000, {"train", "validation"}},
      {"flowers", 5, 0, 0, 3, 3320, 350, {"train", "validation"}},
  };
  return sets;
}

// A folder that lacks a class numbers the others in another way: with the numbers that the classes have in
// training, or none.
data::ImageClassificationRaw image_folder(const DatasetMeta& meta, std::string_view split,
                                          const std::string& directory, SourceLocation where) {
  constexpr const char* kTrain = "train";
  const fs::path folder = fs::path(directory) / split, trained = fs::path(directory) / kTrain;
  if (split == kTrain) return data::ImageClassificationRaw(folder.string());
  if (file::is_directory(trained.string()))
    return {folder.string(), data::ImageClassificationRaw(trained.string()).label_names()};
  data::ImageClassificationRaw alone(folder.string());
  const auto classes = std::ssize(alone.label_names());
  if (classes != meta.num_classes && !file::exists((folder / "labels.txt").string()))
    throw DataError(fmt::format(
        "get_dataset ({}): '{}' has {} classes and {} has {}, so that its labels, which are "
        "numbered by its own directories, would be those of other classes. Put the image folder "
        "'{}' beside it, whose numbers are then taken, or read it with "
        "data::ImageClassificationRaw(directory, label_names)",
        to_string(where), folder.string(), classes, meta.name, meta.num_classes, trained.string()));
  return alone;
}

Dataset photographs(const DatasetMeta& meta, std::string_view split, const std::string& directory,
                    const data::ImageOptions& options, SourceLocation where) {
  const fs::path folder = fs::path(directory) / split;
  if (file::is_directory(folder.string()))
    return image_folder(meta, split, directory, where).dataset(options, where);
  const std::string shards = fmt::format("{}-*", split);
  try {
    return data::image_classification_tfrecord(data::match_files(directory, shards), {.image = options},
                                               where);
  } catch (const NotFound&) {
    throw NotFound(
        fmt::format("get_dataset ({}): neither the image folder '{}' nor TFRecord files '{}' are there",
                    to_string(where), folder.string(), (fs::path(directory) / shards).string()));
  }
}

}  // namespace

DatasetMeta get_dataset_meta(std::string_view name) {
  std::vector<std::string_view> names;
  for (const DatasetMeta& meta : known()) {
    if (meta.name == name) return meta;
    names.push_back(meta.name);
  }
  throw NotFound(fmt::format("there is no data set '{}'; there are {}", name, fmt::join(names, ", ")));
}

Dataset get_dataset(std::string_view name, std::string_view split, const std::string& directory,
                    const data::ImageOptions& options, SourceLocation where) {
  const DatasetMeta meta = get_dataset_meta(name);
  if (std::find(meta.splits.begin(), meta.splits.end(), split) == meta.splits.end())
    throw InvalidArgument(fmt::format("get_dataset ({}): {} has no split '{}'; it has {}", to_string(where),
                                      name, split, fmt::join(meta.splits, ", ")));
  if (meta.channels == 1) return data::mnist(directory, split, {.image_shape = Shape{1, 28, 28}}, where);
  if (meta.num_classes == 10 || meta.num_classes == 100) {
    const data::CifarOptions cifar{.augmentation = options.augmentation, .dtype = options.dtype};
    return meta.num_classes == 10 ? data::cifar10(directory, split, cifar, where)
                                  : data::cifar100(directory, split, cifar, where);
  }
  return photographs(meta, split, directory, options, where);
}

}  // namespace mox
