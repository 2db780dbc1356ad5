#include "moxing/image_sets/internal/left_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <unordered_set>

#include "moxing/file/file.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/nearest_name.h"

namespace mox::data::internal {
namespace {

namespace fs = std::filesystem;

bool is_of_another_kind(const std::string& name) {
  static const std::unordered_set<std::string> kKinds{".webp", ".bmp",  ".gif", ".tif", ".tiff", ".heic",
                                                      ".heif", ".avif", ".jp2", ".j2k", ".jxl",  ".jpe",
                                                      ".jif",  ".jfif", ".ppm", ".pgm", ".pnm",  ".tga"};
  return kKinds.contains(mox::internal::lower_case(fs::path(name).extension().string()));
}

// What storage servers and archives keep beside images: small copies of them.
bool is_of_the_system(const std::string& directory) {
  return directory.starts_with('@') || directory.starts_with("__");
}

// Whether it is a link to a directory that leads to it.
bool leads_back(const std::string& directory) {
  std::error_code unknown;
  if (file::is_remote(directory) || !fs::is_symlink(directory, unknown)) return false;
  const std::string target = real_directory(directory) + "/";
  return (real_directory(fs::path(directory).parent_path()) + "/").starts_with(target);
}

// Of the directory and those below it, as deep as somebody may have put images.
int64_t images_below(const std::string& directory, int depth = 4) {
  if (leads_back(directory)) return 0;
  const Listing listing = list_directory(directory);
  int64_t count = std::ssize(listing.images) + std::ranges::count_if(listing.others, is_of_another_kind);
  if (depth == 0) return count;
  for (const std::string& name : listing.directories)
    if (!is_of_the_system(name)) count += images_below(inside(directory, name), depth - 1);
  return count;
}

// What cannot be looked into has no images that somebody misses.
int64_t images_found_below(const std::string& directory) {
  try {
    return images_below(directory);
  } catch (const std::exception&) {
    return 0;
  }
}

std::string quoted(const std::string& path) { return "'" + path + "'"; }

}  // namespace

std::vector<std::string> images_of_other_kinds(const Listing& listing) {
  std::unordered_set<std::string> read;
  for (const std::string& name : listing.images) read.insert(fs::path(name).stem().string());
  std::vector<std::string> images;
  for (const std::string& name : listing.others)
    if (is_of_another_kind(name) && !read.contains(fs::path(name).stem().string())) images.push_back(name);
  return images;
}

std::vector<std::string> LeftOutImages::add(const std::string& part, const std::string& within,
                                            const Listing& listing) {
  Part found{.name = part, .read = std::ssize(listing.images)};
  const std::vector<std::string> images = images_of_other_kinds(listing);
  std::vector<std::string> others;
  for (const std::string& name : listing.others)
    (std::ranges::binary_search(images, name) ? found.files : others).push_back(inside(within, name));
  for (const std::string& name : listing.directories) {
    const std::string path = inside(within, name);
    const int64_t below = is_of_the_system(name) ? 0 : images_found_below(inside(root_, path));
    found.in_directories += below;
    (below > 0 ? found.directories : others).push_back(path);
  }
  if (found.count() > 0) parts_.push_back(std::move(found));
  return others;
}

std::string LeftOutImages::describe(const Part& part) const {
  std::vector<std::string> texts;
  if (!part.files.empty())
    texts.push_back(fmt::format("{} of other kinds ({})", part.files.size(), some_of(part.files)));
  if (!part.directories.empty())
    texts.push_back(
        fmt::format("{} in directories below ({})", part.in_directories, some_of(part.directories)));
  return fmt::format("of {}, {} of {} images are left out: {}", part.name, part.count(),
                     part.count() + part.read, fmt::join(texts, " and "));
}

std::string LeftOutImages::way_out(const Part& part) const {
  std::vector<std::string> texts;
  if (!part.files.empty()) {
    const std::string directory = inside(root_, fs::path(part.files.front()).parent_path().string());
    std::set<std::string> patterns;
    for (const std::string& file : part.files)
      patterns.insert(quoted(directory) + "/*" + fs::path(file).extension().string());
    texts.push_back(
        "images are read as .jpg, .jpeg and .png, convert these, with ImageMagick: mogrify -auto-orient "
        "-format png " +
        fmt::format("{}", fmt::join(patterns, " ")));
  }
  if (!part.directories.empty()) {
    const std::string directory = inside(root_, part.directories.front());
    texts.push_back(fmt::format("put images into the directory of their class itself: mv {}/* {}/",
                                quoted(directory), quoted(fs::path(directory).parent_path().string())));
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

void LeftOutImages::warn() const {
  if (parts_.empty()) return;
  constexpr size_t kShown = 5;
  std::vector<std::string> texts;
  for (size_t i = 0; i < std::min(parts_.size(), kShown); ++i) texts.push_back(describe(parts_[i]));
  if (parts_.size() > kShown) texts.push_back(fmt::format("and so of {} more", parts_.size() - kShown));
  log_warning(fmt::format("'{}': {}. {}", root_, fmt::join(texts, "; "), way_out(parts_.front())));
}

void LeftOutImages::require_share(double limit) const {
  for (const Part& part : parts_) {
    const int64_t all = part.count() + part.read;
    if (part.count() > limit * all)
      throw DataError(fmt::format(
          "'{}': {}. That is more than the share {:g} that may be left out (max_bad_share, for the image "
          "classifier data.max_bad_share). {}",
          root_, describe(part), limit, way_out(part)));
  }
}

void LeftOutImages::require_none() const {
  if (parts_.empty()) return;
  throw DataError(fmt::format(
      "'{}': {}. A conversion leaves no image out. {}; or take them out of the folder{}", root_,
      describe(parts_.front()), way_out(parts_.front()),
      parts_.size() > 1 ? fmt::format(" ({} more classes lack some, too)", parts_.size() - 1) : ""));
}

}  // namespace mox::data::internal
