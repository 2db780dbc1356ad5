#include "moxing/image_sets/image_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "moxing/file/file.h"
#include "moxing/file/path_counts.h"
#include "moxing/image_sets/internal/directory.h"
#include "moxing/image_sets/internal/encoded_images.h"
#include "moxing/image_sets/internal/image_list.h"
#include "moxing/image_sets/internal/left_out.h"
#include "moxing/image_sets/internal/set_files.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"
#include "runtime/text/utf8.h"

namespace mox::data {
namespace {

namespace fs = std::filesystem;

class UnlabelledImages : public internal::EncodedImages {
 public:
  explicit UnlabelledImages(std::vector<std::string> paths) : files_("", std::move(paths)) {}
  int64_t size() const override { return files_.size(); }
  void will_read(int64_t index) const override { files_.will_read(index); }
  bool has_labels() const override { return false; }
  TensorType label_type() const override { return {}; }
  std::span<const std::byte> load(int64_t index, internal::LoadBuffer* buffer, std::byte*) const override {
    return files_.read(index, &buffer->file);
  }
  std::string locate(int64_t index) const override { return files_.path(index); }
  std::string describe() const override {
    uint32_t sum = 0;
    for (const std::string& path : files_.names()) {
      const std::string name = fs::path(path).filename().string();
      sum = crc32(std::as_bytes(std::span(name)), sum);
    }
    return fmt::format("image files({}, names {:08x})", size(), sum);
  }
  std::string identity() const override {
    return fmt::format("{}, files {:08x}", describe(), files_.checksum());
  }

 private:
  const internal::SetFiles files_;
};

// A directory of a store may have no name, as "a//b" lies in one: it ends in one slash more than the one it
// lies in.
std::string directory_below(const std::string& directory, const std::string& name) {
  const std::string below = (fs::path(directory) / name).string();
  return name.empty() ? below + "/" : below;
}

// The images below a directory. A link back to a directory that leads to it is not followed: the images would
// be there again and again, until names are too long for the system.
class ImagesBelow {
 public:
  void append(const std::string& directory) {
    const std::string place = file::is_remote(directory) ? directory : internal::real_directory(directory);
    if (std::ranges::find(leading_here_, place) != leading_here_.end()) {
      log_warning(
          fmt::format("'{}' is a link back to '{}', which leads to it: it is left out", directory, place));
      return;
    }
    paths_to_.add(place, directory);
    leading_here_.push_back(place);
    const internal::Listing listing = internal::list_directory(directory);
    for (const std::string& name : listing.images) paths.push_back((fs::path(directory) / name).string());
    for (const std::string& name : listing.directories) append(directory_below(directory, name));
    const auto lost = internal::images_of_other_kinds(listing);
    for (const std::string& name : lost) of_other_kinds.push_back((fs::path(directory) / name).string());
    left_out += std::ssize(listing.others) - std::ssize(lost);
    leading_here_.pop_back();
  }

  std::vector<std::string> paths;
  std::vector<std::string> of_other_kinds;
  int64_t left_out = 0;

 private:
  std::vector<std::string> leading_here_;
  file::PathCounts paths_to_;
};

std::vector<std::string> images_of_list(const std::string& list) {
  const std::string text = file::is_remote(list) ? file::read(list) : read_file(list);
  return internal::parse_image_list(text, list, [](const std::string& path) { return file::exists(path); });
}

}  // namespace

std::vector<std::string> list_image_files(const std::string& path) {
  if (!file::exists(path)) throw NotFound(fmt::format("there is no file or directory '{}'", path));
  std::vector<std::string> paths;
  if (file::is_directory(path)) {
    ImagesBelow below;
    below.append(path);
    paths = std::move(below.paths);
    if (below.left_out > 0)
      log_warning(fmt::format("'{}': {} files are not called .jpg, .jpeg or .png and are left out", path,
                              below.left_out));
    if (!below.of_other_kinds.empty())
      log_warning(fmt::format(
          "'{}': images of other kinds get no answer, {} in all: {}. Images are read as .jpg, .jpeg and .png, convert "
          "these, with ImageMagick: mogrify -auto-orient -format png FILE...",
          path, below.of_other_kinds.size(), internal::some_of(below.of_other_kinds)));
  } else if (fs::path(path).extension() == ".txt") {
    paths = images_of_list(path);
  } else {
    paths = {path};
  }
  if (paths.empty()) throw DataError(fmt::format("there are no images in '{}'", path));
  return paths;
}

Dataset image_files(std::vector<std::string> paths, const ImageOptions& options, SourceLocation where) {
  if (options.on_bad_sample == OnBadSample::kSkip)
    throw InvalidArgument(
        "image_files: a bad image cannot be skipped where each file is to get its own answer; "
        "set on_bad_sample to error");
  return internal::augmented_images(std::make_shared<UnlabelledImages>(std::move(paths)), options,
                                    "image_files", where);
}

}  // namespace mox::data
