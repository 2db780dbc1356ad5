#include "moxing/image_sets/image_records.h"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <limits>
#include <mutex>
#include <unordered_map>

#include "moxing/config/remote_places.h"
#include "moxing/file/file.h"
#include "moxing/formats/tf_example.h"
#include "moxing/image/decode.h"
#include "moxing/image_sets/internal/directory.h"
#include "moxing/image_sets/internal/encoded_images.h"
#include "moxing/image_sets/internal/image_example.h"
#include "moxing/image_sets/internal/set_files.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"
#include "runtime/base/random.h"
#include "runtime/job/job.h"

namespace mox::data {
namespace {

using internal::kEncodedFeature;
using internal::kLabelFeature;
using internal::kTextFeature;

// What the labels of records are called, compared with what the records say themselves.
class RecordNames {
 public:
  explicit RecordNames(std::vector<std::string> names) : names_(std::move(names)) {
    bool are_numbers = true;
    for (size_t i = 0; i < names_.size(); ++i) {
      are_numbers &= names_[i] == std::to_string(i);
      numbers_.emplace(names_[i], i);
    }
    if (are_numbers) names_.clear();
  }

  uint32_t checksum() const {
    uint32_t sum = 0;
    for (const std::string& name : names_)
      sum = crc32(std::as_bytes(std::span(name.data(), name.size() + 1)), sum);
    return sum;
  }

  void compare(size_t label, const std::string& text, const std::string& place) const {
    if (label >= names_.size() || text.empty() || names_[label] == text) return;
    const auto found = numbers_.find(text);
    if (found == numbers_.end()) return warn_once(label, text, place);
    // As with labels that are out of range, whole classes are meant.
    throw FailedPrecondition(fmt::format(
        "{}: its label stands for '{}' (number {} in the list of classes), but it says of itself '{}' ({}), which "
        "is number {} in the list: it was numbered by another one, as the files of another conversion are. Give "
        "it the labels.txt that was written with it, or convert all parts of the set into one directory, whose "
        "labels.txt then numbers them all (and label_offset is to be 0 for what mox convert wrote)",
        place, names_[label], label, text, kTextFeature, found->second));
  }

 private:
  void warn_once(size_t label, const std::string& text, const std::string& place) const {
    std::call_once(has_warned_, [&] {
      if (mox::internal::job().rank() == 0)
        log_warning(fmt::format(
            "{}: the record says '{}' ({}), a name that the list of classes does not have, where its "
            "label is called '{}': whether the list belongs to these files is not known",
            place, text, kTextFeature, names_[label]));
    });
  }

  std::vector<std::string> names_;  // empty where there is nothing to compare
  std::unordered_map<std::string, size_t> numbers_;
  mutable std::once_flag has_warned_;
};

class RecordImages : public internal::EncodedImages {
 public:
  RecordImages(std::shared_ptr<const TfRecordFiles> files, int64_t label_offset, int64_t num_classes,
               std::vector<std::string> names)
      : files_(std::move(files)),
        label_offset_(label_offset),
        num_classes_(num_classes),
        names_(std::move(names)) {}

  int64_t size() const override { return files_->size(); }
  TensorType label_type() const override { return {DType::kInt32, Shape{}}; }
  std::string locate(int64_t index) const override { return files_->locate(index); }
  void will_read(int64_t index) const override { files_->will_read(index); }
  std::string describe() const override {
    return fmt::format("{}, labels less {}", files_->describe(), label_offset_);
  }
  std::string identity() const override {
    return fmt::format("{}, files {:08x}, names {:08x}", describe(),
                       internal::files_checksum(files_->paths()), names_.checksum());
  }

  std::span<const std::byte> load(int64_t index, internal::LoadBuffer* buffer,
                                  std::byte* label) const override {
    const auto record = files_->read(index, &buffer->file);
    const internal::ImageExample example = internal::read_image_example(record, files_->locate(index));
    const int64_t given = example.label;
    const int64_t most = num_classes_ > 0 ? num_classes_ - 1 : std::numeric_limits<int32_t>::max();
    if (given < label_offset_ || given - label_offset_ > most)
      // No damage of one sample, which could be skipped: a whole class would be lost.
      throw FailedPrecondition(fmt::format(
          "{}: the label {} is out of range: expected {} to {}. label_offset (data.label_offset of the image "
          "classifier) is subtracted from labels: it is {} now; 1 is for labels that begin at 1",
          files_->locate(index), given, label_offset_, label_offset_ + most, label_offset_));
    const int32_t value = given - label_offset_;
    if (example.text) names_.compare(value, std::string(*example.text), files_->locate(index));
    std::memcpy(label, &value, sizeof value);
    return example.encoded;
  }

 private:
  std::shared_ptr<const TfRecordFiles> files_;
  int64_t label_offset_, num_classes_;
  RecordNames names_;
};

// The number in `names` of each of the folder's classes.
std::vector<int64_t> numbers_in(const std::vector<std::string>& names, const ImageClassificationRaw& folder,
                                const std::string& list) {
  std::unordered_map<std::string_view, int64_t> number;
  for (size_t i = 0; i < names.size(); ++i) number.emplace(names[i], static_cast<int64_t>(i));
  std::vector<int64_t> result;
  for (const std::string& name : folder.label_names()) {
    const auto found = number.find(name);
    if (found == number.end())
      throw DataError(fmt::format(
          "'{}' has the classes {} (written with the files beside it), '{}' has {}: '{}' is not among them. "
          "Convert the part with all classes first, write into another directory, or remove labels.txt and "
          "the files that were numbered by it",
          list, internal::some_of(names), folder.directory(), internal::some_of(folder.label_names()), name));
    result.push_back(found->second);
  }
  return result;
}

}  // namespace

Dataset image_classification_tfrecord(const std::string& patterns, const ImageRecordOptions& options,
                                      SourceLocation where) {
  return image_classification_tfrecord(match_files(patterns), options, where);
}

Dataset image_classification_tfrecord(const std::vector<std::string>& paths,
                                      const ImageRecordOptions& options, SourceLocation where) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (options.num_classes < 0 || options.num_classes > kMost || options.label_offset < -kMost ||
      options.label_offset > kMost)
    throw InvalidArgument(fmt::format(
        "image_classification_tfrecord ({}): num_classes {} and label_offset {} must fit into int32, and "
        "num_classes must not be negative",
        to_string(where), options.num_classes, options.label_offset));
  std::vector<std::string> names = options.label_names;
  if (!names.empty() && options.num_classes != 0 && options.num_classes != std::ssize(names))
    throw InvalidArgument(fmt::format(
        "image_classification_tfrecord ({}): num_classes is {}, and label_names has {}; they must agree",
        to_string(where), options.num_classes, names.size()));
  if (paths.empty())
    throw InvalidArgument(
        fmt::format("image_classification_tfrecord ({}): no files are given", to_string(where)));
  const std::string list = (std::filesystem::path(paths.front()).parent_path() / "labels.txt").string();
  if (names.empty() && file::exists(list)) names = read_label_names(list);
  if (options.num_classes != 0 && options.num_classes != std::ssize(names)) names.clear();
  const int64_t classes = options.num_classes != 0 ? options.num_classes : std::ssize(names);
  TfRecordOptions records = options.records;
  if (file::is_remote(paths.front()) && records.index_directory.empty())
    records.index_directory = mox::internal::local_places() + "/index";
  auto images = std::make_shared<RecordImages>(TfRecordFiles::open(paths, records), options.label_offset,
                                               classes, std::move(names));
  return internal::augmented_images(std::move(images), options.image, "image_classification_tfrecord", where);
}

std::string serialize_image_record(const ImageRecord& record) {
  const auto bytes = std::as_bytes(std::span(record.encoded.data(), record.encoded.size()));
  // Decoded whole: a damaged image is found here, not in the middle of a training run.
  const image::Bitmap bitmap = image::decode(bytes, record.file_name);
  const bool png = record.encoded.starts_with("\x89PNG");
  using Strings = std::vector<std::string>;
  using Integers = std::vector<int64_t>;
  return serialize_example({{kEncodedFeature, Strings{record.encoded}},
                            {"image/format", Strings{png ? "png" : "jpeg"}},
                            {kLabelFeature, Integers{record.label}},
                            {kTextFeature, Strings{record.class_name}},
                            {"image/filename", Strings{record.file_name}},
                            {"image/height", Integers{bitmap.height}},
                            {"image/width", Integers{bitmap.width}}});
}

namespace {

std::string record_of(const ImageRecord& record) {
  try {
    return serialize_image_record(record);
  } catch (const DataError& error) {
    throw DataError(fmt::format(
        "{}. A conversion leaves no image out: put a good file in its place, or take it out of the folder",
        error.what()));
  }
}

}  // namespace

std::vector<std::string> convert_image_folder(const ImageClassificationRaw& folder, const std::string& prefix,
                                              const ConvertOptions& options) {
  folder.require_none_left_out();
  constexpr int kMostShards = 99999;
  const int64_t total = folder.files().size();
  if (options.shards < 1 || options.shards > kMostShards || options.shards > total)
    throw InvalidArgument(fmt::format("shards must be 1 to {} and not more than the {} images, it is {}",
                                      kMostShards, total, options.shards));
  const auto parent = std::filesystem::path(prefix).parent_path();
  if (!parent.empty()) make_directories(parent.string());
  const std::string list = (parent / "labels.txt").string();
  const std::vector<std::string> names = is_there(list) ? read_label_names(list) : folder.label_names();
  const std::vector<int64_t> labels = numbers_in(names, folder, list);
  const Permutation order(total, options.seed, stable_hash("convert"));
  std::vector<std::string> paths;
  int64_t done = 0;
  for (int shard = 0; shard < options.shards; ++shard) {
    paths.push_back(fmt::format("{}-{:05}-of-{:05}", prefix, shard, options.shards));
    TfRecordWriter writer(paths.back());
    for (int64_t position = shard; position < total; position += options.shards) {
      const ImageFile& file = folder.files()[order(position)];
      const std::string path = (std::filesystem::path(folder.directory()) / file.path).string();
      const std::string record = record_of({.encoded = read_file(path),
                                            .class_name = folder.label_names()[file.label],
                                            .file_name = path,
                                            .label = labels[file.label]});
      writer.write(std::as_bytes(std::span(record.data(), record.size())));
      if (options.progress) options.progress(++done, total);
    }
    writer.close();
  }
  write_label_names(list, names);
  return paths;
}

}  // namespace mox::data
