#include "moxing/image_sets/image_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "moxing/file/file.h"
#include "moxing/image_sets/internal/directory.h"
#include "moxing/image_sets/internal/encoded_images.h"
#include "moxing/image_sets/internal/folder_of_images.h"
#include "moxing/image_sets/internal/label_words.h"
#include "moxing/image_sets/internal/left_out.h"
#include "moxing/image_sets/internal/set_files.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"

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
  warn_of_other_files(directory_, others);
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

}  // namespace mox::data
