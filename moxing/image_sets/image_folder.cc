#include "moxing/image_sets/image_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "moxing/image_sets/internal/directory.h"
#include "moxing/image_sets/internal/encoded_images.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace mox::data {
namespace {

using internal::EncodedImages;
using internal::list_directory;
using internal::LoadBuffer;
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
  std::vector<std::string> result;
  std::copy_if(some.begin(), some.end(), std::back_inserter(result), [&](const std::string& name) {
    return std::find(others.begin(), others.end(), name) == others.end();
  });
  return result;
}

// Images that are files of one directory.
class FilesOfImages : public EncodedImages {
 public:
  FilesOfImages(std::string directory, std::vector<std::string> paths)
      : directory_(std::move(directory)), paths_(std::move(paths)) {}
  int64_t size() const override { return static_cast<int64_t>(paths_.size()); }
  std::string locate(int64_t index) const override {
    return inside(directory_, paths_[static_cast<size_t>(index)]);
  }
  std::string identity() const override {
    std::vector<std::string> paths;
    for (int64_t i = 0; i < size(); ++i) paths.push_back(locate(i));
    return fmt::format("{}, files {:08x}", describe(), internal::files_checksum(paths));
  }

 protected:
  const std::vector<std::string>& paths() const { return paths_; }  // from the directory

 private:
  std::string directory_;
  std::vector<std::string> paths_;
};

class FolderImages : public FilesOfImages {
 public:
  FolderImages(std::string directory, std::vector<std::string> paths, std::vector<int32_t> labels)
      : FilesOfImages(std::move(directory), std::move(paths)), labels_(std::move(labels)) {}
  TensorType label_type() const override { return {DType::kInt32, Shape{}}; }
  std::span<const std::byte> load(int64_t index, LoadBuffer* buffer, std::byte* label) const override {
    std::memcpy(label, &labels_[static_cast<size_t>(index)], sizeof(int32_t));
    return internal::read_into(locate(index), &buffer->file);
  }
  std::string describe() const override {
    uint32_t sum = 0;
    for (size_t i = 0; i < labels_.size(); ++i)
      sum = checksum(paths()[i], sum ^ static_cast<uint32_t>(labels_[i]));
    return fmt::format("image folder({} files, names {:08x})", labels_.size(), sum);
  }

 private:
  std::vector<int32_t> labels_;
};

class MultilabelImages : public FilesOfImages {
 public:
  MultilabelImages(std::string directory, std::vector<std::string> paths,
                   std::vector<std::vector<int32_t>> labels, size_t classes)
      : FilesOfImages(std::move(directory), std::move(paths)),
        labels_(std::move(labels)),
        classes_(classes) {}
  TensorType label_type() const override { return {DType::kFloat32, Shape{static_cast<int64_t>(classes_)}}; }
  std::span<const std::byte> load(int64_t index, LoadBuffer* buffer, std::byte* label) const override {
    auto* values = reinterpret_cast<float*>(label);
    std::fill_n(values, classes_, 0.0f);
    for (int32_t present : labels_[static_cast<size_t>(index)]) values[present] = 1;
    return internal::read_into(locate(index), &buffer->file);
  }
  std::string describe() const override {
    uint32_t sum = 0;
    for (size_t i = 0; i < labels_.size(); ++i)
      sum = checksum(fmt::format("{} {}", paths()[i], fmt::join(labels_[i], " ")), sum);
    return fmt::format("multilabel folder({} files, names {:08x})", labels_.size(), sum);
  }

 private:
  std::vector<std::vector<int32_t>> labels_;
  size_t classes_;
};

std::vector<std::string> lines_of(const std::string& path) {
  LoadBuffer buffer;
  const auto bytes = internal::read_into(path, &buffer.file);
  const std::string_view content(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < content.size();) {
    const size_t end = std::min(content.find('\n', begin), content.size());
    lines.emplace_back(content.substr(begin, end - begin));
    if (lines.back().ends_with('\r')) lines.back().pop_back();
    begin = end + 1;
  }
  return lines;
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
  std::vector<std::string> others = root.images;
  for (const std::string& name : root.others)
    if (name != kLabelsFile) others.push_back(name);
  for (size_t label = 0; label < label_names_.size(); ++label) {
    const internal::Listing listing = list_directory(inside(directory_, label_names_[label]));
    if (listing.images.empty())
      throw DataError(fmt::format("the class '{}' is empty: there are no .jpg, .jpeg or .png files in '{}'",
                                  label_names_[label], inside(directory_, label_names_[label])));
    for (const std::string& name : listing.images)
      files_.push_back({inside(label_names_[label], name), static_cast<int32_t>(label)});
    for (const auto* names : {&listing.directories, &listing.others})
      for (const std::string& name : *names) others.push_back(inside(label_names_[label], name));
  }
  warn_of(directory_, others);
}

Dataset ImageClassificationRaw::dataset(const ImageOptions& options, SourceLocation where) const {
  std::vector<std::string> paths;
  std::vector<int32_t> labels;
  for (const ImageFile& file : files_) {
    paths.push_back(file.path);
    labels.push_back(file.label);
  }
  return internal::augmented_images(
      std::make_shared<FolderImages>(directory_, std::move(paths), std::move(labels)), options,
      "ImageClassificationRaw", where);
}

MultilabelClassificationRaw::MultilabelClassificationRaw(std::string directory)
    : directory_(std::move(directory)) {
  const std::string images = inside(directory_, "images"), labels = inside(directory_, "labels");
  const internal::Listing image_listing = list_directory(images);
  const internal::Listing label_listing = list_directory(labels);
  if (image_listing.images.empty()) throw DataError(fmt::format("there are no images in '{}'", images));
  warn_of(images, image_listing.others);
  std::vector<std::string> expected;
  for (const std::string& name : image_listing.images) expected.push_back(name + ".txt");
  const auto missing = only_in(expected, label_listing.others),
             excess = only_in(label_listing.others, expected);
  if (!missing.empty() || !excess.empty())
    throw DataError(
        fmt::format("'{}' and '{}' disagree: label files that are missing: {}; label files without an "
                    "image: {}",
                    images, labels, missing.empty() ? "none" : some_of(missing),
                    excess.empty() ? "none" : some_of(excess)));

  std::vector<std::vector<std::string>> names;
  for (const std::string& file : expected) names.push_back(lines_of(inside(labels, file)));
  const std::string list = inside(directory_, kLabelsFile);
  const bool listed = std::filesystem::exists(list);
  if (listed) {
    label_names_ = read_label_names(list);
  } else {
    for (const auto& lines : names)
      for (const std::string& name : lines)
        if (!name.empty()) label_names_.push_back(name);
    std::sort(label_names_.begin(), label_names_.end());
    label_names_.erase(std::unique(label_names_.begin(), label_names_.end()), label_names_.end());
    if (label_names_.empty()) throw DataError(fmt::format("no file in '{}' holds a label", labels));
  }
  for (size_t i = 0; i < names.size(); ++i) {
    std::vector<int32_t> present;
    for (size_t line = 0; line < names[i].size(); ++line) {
      if (names[i][line].empty()) continue;
      const auto found = std::find(label_names_.begin(), label_names_.end(), names[i][line]);
      if (found == label_names_.end())
        throw DataError(fmt::format("'{}', line {}: the label '{}' is not in '{}'",
                                    inside(labels, expected[i]), line + 1, names[i][line], list));
      present.push_back(static_cast<int32_t>(found - label_names_.begin()));
    }
    paths_.push_back(inside("images", image_listing.images[i]));
    labels_.push_back(std::move(present));
  }
}

Dataset MultilabelClassificationRaw::dataset(const ImageOptions& options, SourceLocation where) const {
  return internal::augmented_images(
      std::make_shared<MultilabelImages>(directory_, paths_, labels_, label_names_.size()), options,
      "MultilabelClassificationRaw", where);
}

}  // namespace mox::data
