#include "moxing/image_sets/image_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <unordered_set>
#include <utility>

#include "moxing/file/file.h"
#include "moxing/image_sets/internal/directory.h"
#include "moxing/image_sets/internal/encoded_images.h"
#include "moxing/image_sets/internal/label_words.h"
#include "moxing/image_sets/internal/left_out.h"
#include "moxing/image_sets/internal/set_files.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/function_ref.h"
#include "runtime/base/log.h"

namespace mox::data {
namespace {

using internal::EncodedImages;
using internal::list_directory;
using internal::LoadBuffer;
using internal::SetFiles;
using internal::some_of;

constexpr const char* kLabelsFile = "labels.txt";

std::string inside(const std::string& directory, const std::string& name) {
  return (std::filesystem::path(directory) / name).string();
}

uint32_t checksum(const std::string& text, uint32_t previous) {
  return crc32c(std::as_bytes(std::span(text.data(), text.size() + 1)), previous);
}

void warn_of(const std::string& directory, const std::vector<std::string>& others) {
  if (!others.empty())
    log_warning(fmt::format("'{}': {} entries are not called .jpg, .jpeg or .png and are left out: {}",
                            directory, others.size(), some_of(others)));
}

std::vector<std::string> only_in(const std::vector<std::string>& some,
                                 const std::vector<std::string>& others) {
  const std::unordered_set<std::string_view> known(others.begin(), others.end());
  std::vector<std::string> result;
  std::copy_if(some.begin(), some.end(), std::back_inserter(result),
               [&](const std::string& name) { return !known.contains(name); });
  return result;
}

std::string classes_text(const std::vector<std::string>& of_run) {
  return fmt::format("{} classes: {}", of_run.size(), some_of(of_run));
}

void require_known(const std::string& directory, const std::vector<std::string>& given,
                   const std::vector<std::string>& of_run) {
  const auto unknown = only_in(given, of_run);
  if (!unknown.empty())
    throw DataError(fmt::format("'{}' has classes that the run does not have: {}; its {} classes are {}",
                                directory, some_of(unknown), of_run.size(), some_of(of_run)));
}

void warn_of_lacking(const std::string& directory, const std::vector<std::string>& lacking, size_t classes) {
  if (!lacking.empty())
    log_warning(fmt::format("'{}' has no images of {} of the {} classes: {}", directory, lacking.size(),
                            classes, some_of(lacking)));
}

// Images that are files of one directory.
class FilesOfImages : public EncodedImages {
 public:
  explicit FilesOfImages(std::unique_ptr<const SetFiles> files) : files_(std::move(files)) {}
  int64_t size() const override { return files_->size(); }
  std::string locate(int64_t index) const override { return files_->path(index); }
  void will_read(int64_t index) const override { files_->will_read(index); }
  std::string identity() const override {
    return fmt::format("{}, files {:08x}", describe(), files_->checksum());
  }

 protected:
  const SetFiles& files() const { return *files_; }

 private:
  const std::unique_ptr<const SetFiles> files_;
};

class FolderImages : public FilesOfImages {
 public:
  FolderImages(std::unique_ptr<const SetFiles> files, std::vector<int32_t> labels,
               std::vector<std::string> classes)
      : FilesOfImages(std::move(files)), labels_(std::move(labels)), classes_(std::move(classes)) {}
  TensorType label_type() const override { return {DType::kInt32, Shape{}}; }
  std::vector<int64_t> class_sizes() const override {
    std::vector<int64_t> sizes;
    for (const int32_t label : labels_) {
      sizes.resize(std::max(sizes.size(), static_cast<size_t>(label) + 1));
      ++sizes[label];
    }
    return sizes;
  }
  std::vector<std::string> class_names() const override { return classes_; }
  std::span<const std::byte> load(int64_t index, LoadBuffer* buffer, std::byte* label) const override {
    std::memcpy(label, &labels_[index], sizeof(int32_t));
    return files().read(index, &buffer->file);
  }
  std::string describe() const override {
    uint32_t sum = 0;
    for (size_t i = 0; i < labels_.size(); ++i)
      sum = checksum(files().names()[i], sum ^ static_cast<uint32_t>(labels_[i]));
    return fmt::format("image folder({} files, names {:08x})", labels_.size(), sum);
  }

 private:
  std::vector<int32_t> labels_;
  std::vector<std::string> classes_;
};

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

// Images beside the directories of the classes, of which nothing says what they show.
void warn_of_stray_images(const std::string& directory, const std::vector<std::string>& images) {
  if (!images.empty())
    log_warning(fmt::format("'{}': {} image{} outside of the directories of the classes and left out: {}",
                            directory, images.size(), images.size() == 1 ? " is" : "s are", some_of(images)));
}

std::vector<std::string> others_of(const internal::Listing& root) {
  std::vector<std::string> others;
  for (const std::string& name : root.others)
    if (name != kLabelsFile) others.push_back(name);
  return others;
}

// What a class without images has instead, and how to go on.
std::string empty_class(const std::string& path, const std::string& name, const internal::Listing& listing) {
  std::string text =
      fmt::format("the class '{}' is empty: there are no .jpg, .jpeg or .png files in '{}'", name, path);
  if (!listing.others.empty())
    text += fmt::format(
        "; there are {}: images of other kinds are to be converted (mogrify -auto-orient -format png FILE...)",
        some_of(listing.others));
  if (!listing.directories.empty())
    text += fmt::format(
        "; it has the directories {}: SPLIT/CLASS/IMAGE or SPLIT/CLASS/images/IMAGE is expected, "
        "and data_url is the directory of the splits",
        some_of(listing.directories));
  return text;
}

bool is_whole_number(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Directories called 0, 1, 2, ... 10 are in the order of text, so that class '10' has label 2.
void warn_of_numbers(const std::string& directory, const std::vector<std::string>& names) {
  if (!std::all_of(names.begin(), names.end(), is_whole_number)) return;
  for (size_t i = 0; i + 1 < names.size(); ++i)
    if (names[i].size() > names[i + 1].size()) {
      log_warning(fmt::format(
          "'{}': the classes are called by numbers and are numbered in the order of text: class "
          "'{}' has label {}, class '{}' has label {}; a labels.txt beside them gives another order",
          directory, names[i], i, names[i + 1], i + 1));
      return;
    }
}

}  // namespace

ImageClassificationRaw::ImageClassificationRaw(std::string directory) : directory_(std::move(directory)) {
  const internal::Listing root = list_directory(directory_);
  if (root.directories.empty())
    throw DataError(fmt::format(
        "'{}' has no sub-directories: each class of images is expected in one of its own", directory_));
  label_names_ = root.directories;
  const bool listed = std::find(root.others.begin(), root.others.end(), kLabelsFile) != root.others.end();
  if (listed) {
    label_names_ = read_label_names(inside(directory_, kLabelsFile));
    const auto without_directory = only_in(label_names_, root.directories);
    const auto without_label = only_in(root.directories, label_names_);
    if (!without_directory.empty() || !without_label.empty())
      throw DataError(fmt::format(
          "'{}' disagrees with the directories beside it: labels without a directory: {}; "
          "directories without a label: {}",
          inside(directory_, kLabelsFile), without_directory.empty() ? "none" : some_of(without_directory),
          without_label.empty() ? "none" : some_of(without_label)));
  }
  if (!listed) warn_of_numbers(directory_, label_names_);
  internal::warn_of_similar_names(directory_, label_names_);
  require_writable_names(label_names_, directory_);
  warn_of_stray_images(directory_, root.images);
  list_classes(others_of(root), false);
}

ImageClassificationRaw::ImageClassificationRaw(std::string directory, std::vector<std::string> label_names)
    : directory_(std::move(directory)), label_names_(std::move(label_names)) {
  const internal::Listing root = list_directory(directory_);
  std::vector<std::string> given = root.directories;
  if (std::find(root.others.begin(), root.others.end(), kLabelsFile) != root.others.end())
    for (const std::string& name : read_label_names(inside(directory_, kLabelsFile)))
      if (!std::binary_search(root.directories.begin(), root.directories.end(), name)) given.push_back(name);
  require_known(directory_, given, label_names_);
  warn_of_stray_images(directory_, root.images);
  list_classes(others_of(root), true);
}

void ImageClassificationRaw::list_classes(std::vector<std::string> others, bool may_lack) {
  std::vector<std::string> lacking;
  internal::LeftOutImages left_out(directory_);
  for (size_t label = 0; label < label_names_.size(); ++label) {
    const std::string& name = label_names_[label];
    std::string within = name;
    internal::Listing listing;
    if (!may_lack || file::is_directory(inside(directory_, name)))
      listing = list_directory(inside(directory_, name));
    if (listing.images.empty() && listing.directories == std::vector<std::string>{"images"}) {
      within = inside(name, "images");  // as Tiny ImageNet has it
      for (const std::string& other : listing.others) others.push_back(inside(name, other));
      listing = list_directory(inside(directory_, within));
    }
    if (listing.images.empty() && (!may_lack || !listing.others.empty() || !listing.directories.empty()))
      throw DataError(empty_class(inside(directory_, within), name, listing));
    if (listing.images.empty()) lacking.push_back(name);
    for (const std::string& file : listing.images)
      files_.push_back({inside(within, file), static_cast<int32_t>(label)});
    etags_.insert(etags_.end(), listing.image_etags.begin(), listing.image_etags.end());
    for (std::string& other : left_out.add("class '" + name + "'", within, listing))
      others.push_back(std::move(other));
  }
  if (files_.empty()) throw DataError(fmt::format("'{}' has no images of any class of the run", directory_));
  warn_of_lacking(directory_, lacking, label_names_.size());
  warn_of(directory_, others);
  left_out.warn();
  left_out_ = std::make_shared<const internal::LeftOutImages>(std::move(left_out));
}

void ImageClassificationRaw::require_none_left_out() const { left_out_->require_none(); }

Dataset ImageClassificationRaw::dataset(const ImageOptions& options, SourceLocation where) const {
  left_out_->require_share(options.max_bad_share);
  std::vector<std::string> paths;
  std::vector<int32_t> labels;
  for (const ImageFile& file : files_) {
    paths.push_back(file.path);
    labels.push_back(file.label);
  }
  return internal::augmented_images(
      std::make_shared<FolderImages>(std::make_unique<SetFiles>(directory_, std::move(paths), etags_),
                                     std::move(labels), label_names_),
      options, "ImageClassificationRaw", where);
}

namespace {

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
  warn_of(directory_, left_out.add("the set", "images", image_listing));
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
