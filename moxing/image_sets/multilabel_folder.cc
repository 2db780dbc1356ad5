#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "moxing/file/file.h"
#include "moxing/image_sets/image_folder.h"
#include "moxing/image_sets/internal/directory.h"
#include "moxing/image_sets/internal/encoded_images.h"
#include "moxing/image_sets/internal/folder_of_images.h"
#include "moxing/image_sets/internal/label_words.h"
#include "moxing/image_sets/internal/left_out.h"
#include "moxing/image_sets/internal/set_files.h"
#include "runtime/base/error.h"

namespace mox::data {
namespace {

using internal::checksum;
using internal::FilesOfImages;
using internal::inside;
using internal::kLabelsFile;
using internal::list_directory;
using internal::LoadBuffer;
using internal::only_in;
using internal::require_known;
using internal::SetFiles;
using internal::some_of;
using internal::warn_of_lacking;
using internal::warn_of_other_files;

class MultilabelImages : public FilesOfImages {
 public:
  MultilabelImages(std::unique_ptr<const SetFiles> files, std::vector<std::vector<int32_t>> labels,
                   std::vector<std::string> classes)
      : FilesOfImages(std::move(files)), labels_(std::move(labels)), classes_(std::move(classes)) {}
  TensorType label_type() const override { return {DType::kFloat32, Shape{std::ssize(classes_)}}; }
  std::vector<std::string> class_names() const override { return classes_; }
  std::vector<int64_t> class_sizes() const override {
    std::vector<int64_t> sizes(classes_.size());
    for (const auto& present : labels_)
      for (const int32_t label : present) ++sizes[label];
    return sizes;
  }
  std::span<const int32_t> classes_of(int64_t index) const override { return labels_[index]; }
  std::span<const std::byte> load(int64_t index, LoadBuffer* buffer, std::byte* label) const override {
    auto* values = reinterpret_cast<float*>(label);
    std::fill_n(values, classes_.size(), 0.0f);
    for (int32_t present : labels_[index]) values[present] = 1;
    return files().read(index, &buffer->file);
  }
  std::string describe() const override {
    uint32_t sum = 0;
    for (size_t i = 0; i < labels_.size(); ++i)
      sum = checksum(fmt::format("{} {}", files().names()[i], fmt::join(labels_[i], " ")), sum);
    return fmt::format("multilabel folder({} files, names {:08x})", labels_.size(), sum);
  }

 private:
  std::vector<std::vector<int32_t>> labels_;
  std::vector<std::string> classes_;
};

std::string classes_text(const std::vector<std::string>& of_run) {
  return fmt::format("{} classes: {}", of_run.size(), some_of(of_run));
}

void require_pairs(const std::string& images, const std::string& labels,
                   const std::vector<std::string>& expected, const std::vector<std::string>& found) {
  const auto missing = only_in(expected, found), excess = only_in(found, expected);
  if (missing.empty() && excess.empty()) return;
  throw DataError(
      fmt::format("'{}' and '{}' disagree: label files that are missing: {}; label files without an "
                  "image: {}",
                  images, labels, missing.empty() ? "none" : some_of(missing),
                  excess.empty() ? "none" : some_of(excess)));
}

constexpr size_t kMostLabels = 1'000'000;  // of a set that no labels.txt lists

using LabelNumbers = std::map<std::string, int32_t, std::less<>>;

LabelNumbers numbers_of(const std::vector<std::string>& names) {
  LabelNumbers numbers;
  for (size_t i = 0; i < names.size(); ++i) numbers.emplace(names[i], static_cast<int32_t>(i));
  return numbers;
}

// The labels of each image by their numbers, each once. `known` says which labels there are; if it is empty,
// there are those that come, numbered as they do.
std::vector<std::vector<int32_t>> labels_of_files(const std::string& directory,
                                                  const std::vector<std::string>& names,
                                                  const std::string& known, LabelNumbers* numbers) {
  const SetFiles files(directory, names);
  for (int64_t i = 0; i < files.size(); ++i) files.will_read(i);
  std::vector<std::vector<int32_t>> result(names.size());
  std::vector<int64_t> last_image;  // that has the label
  RecordBuffer buffer;
  for (int64_t i = 0; i < files.size(); ++i) {
    const auto bytes = files.read(i, &buffer);
    internal::for_each_label({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, [&](std::string_view
                                                                                                  label,
                                                                                              size_t line) {
      auto found = numbers->find(label);
      if (found == numbers->end() && !known.empty())
        throw DataError(fmt::format("'{}', line {}: the label '{}' is not {}", inside(directory, names[i]),
                                    line, label, known));
      if (found == numbers->end() && numbers->size() == kMostLabels)
        throw DataError(fmt::format(
            "'{}', line {}: this is label number {} of the set, more than any set has. Is the file one of "
            "labels, a line each? If it is, list the set's labels in labels.txt",
            inside(directory, names[i]), line, kMostLabels + 1));
      if (found == numbers->end())
        found = numbers->emplace(label, static_cast<int32_t>(numbers->size())).first;
      const auto number = static_cast<size_t>(found->second);
      if (number >= last_image.size()) last_image.resize(number + 1, -1);
      if (std::exchange(last_image[number], i) != i) result[i].push_back(found->second);
    });
  }
  return result;
}

// The names in their order, by which the labels are numbered anew.
std::vector<std::string> sorted_names(const LabelNumbers& numbers,
                                      std::vector<std::vector<int32_t>>* labels) {
  std::vector<std::string> names;
  std::vector<int32_t> sorted(numbers.size());
  for (const auto& [name, number] : numbers) {
    sorted[number] = static_cast<int32_t>(names.size());
    names.push_back(name);
  }
  for (auto& of_image : *labels)
    for (int32_t& label : of_image) label = sorted[label];
  return names;
}

std::vector<std::string> lacking_in(const std::vector<std::vector<int32_t>>& labels,
                                    const std::vector<std::string>& names) {
  std::vector<bool> is_there(names.size());
  for (const auto& of_image : labels)
    for (const int32_t label : of_image) is_there[label] = true;
  std::vector<std::string> lacking;
  for (size_t i = 0; i < names.size(); ++i)
    if (!is_there[i]) lacking.push_back(names[i]);
  return lacking;
}

}  // namespace

MultilabelClassificationRaw::MultilabelClassificationRaw(std::string directory)
    : directory_(std::move(directory)) {
  list_images(false);
}

MultilabelClassificationRaw::MultilabelClassificationRaw(std::string directory,
                                                         std::vector<std::string> label_names)
    : directory_(std::move(directory)), label_names_(std::move(label_names)) {
  list_images(true);
}

void MultilabelClassificationRaw::list_images(bool are_known) {
  const std::string images = inside(directory_, "images"), labels = inside(directory_, "labels");
  const internal::Listing image_listing = list_directory(images);
  const internal::Listing label_listing = list_directory(labels);
  if (image_listing.images.empty()) throw DataError(fmt::format("there are no images in '{}'", images));
  etags_ = image_listing.image_etags;
  internal::LeftOutImages left_out(directory_);
  warn_of_other_files(directory_, left_out.add("the set", "images", image_listing));
  left_out.warn();
  left_out_ = std::make_shared<const internal::LeftOutImages>(std::move(left_out));
  std::vector<std::string> label_files;
  for (const std::string& name : image_listing.images) label_files.push_back(name + ".txt");
  require_pairs(images, labels, label_files, label_listing.others);

  const std::string list = inside(directory_, kLabelsFile);
  const bool listed = file::exists(list);
  if (are_known)
    require_known(directory_, listed ? read_label_names(list) : std::vector<std::string>{}, label_names_);
  else if (listed)
    label_names_ = read_label_names(list);
  const std::string known = are_known ? "one of the run's " + classes_text(label_names_)
                            : listed  ? "in '" + list + "'"
                                      : "";
  LabelNumbers numbers = numbers_of(label_names_);
  labels_ = labels_of_files(labels, label_files, known, &numbers);
  if (known.empty()) label_names_ = sorted_names(numbers, &labels_);
  if (!are_known) {
    if (label_names_.empty()) throw DataError(fmt::format("no file in '{}' holds a label", labels));
    internal::warn_of_similar_names(directory_, label_names_);
  }
  for (const std::string& image : image_listing.images) paths_.push_back(inside("images", image));
  if (are_known) warn_of_lacking(directory_, lacking_in(labels_, label_names_), label_names_.size());
}

Dataset MultilabelClassificationRaw::dataset(const ImageOptions& options, SourceLocation where) const {
  left_out_->require_share(options.max_bad_share);
  return internal::augmented_images(
      std::make_shared<MultilabelImages>(std::make_unique<SetFiles>(directory_, paths_, etags_), labels_,
                                         label_names_),
      options, "MultilabelClassificationRaw", where);
}

}  // namespace mox::data
