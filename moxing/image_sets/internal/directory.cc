#include "moxing/image_sets/internal/directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <span>

#include "moxing/file/file.h"
#include "runtime/base/error.h"
#include "runtime/base/nearest_name.h"

namespace mox::data::internal {
namespace {

bool called_image(const std::filesystem::path& path) {
  const std::string extension = mox::internal::lower_case(path.extension().string());
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png";
}

void sort(Listing& listing) {
  for (auto* names : {&listing.directories, &listing.images, &listing.others})
    std::sort(names->begin(), names->end());
}

Listing list_objects(const std::string& url) {
  Listing listing;
  for (const file::DirectoryEntry& entry : file::scan_dir(url)) {  // sorted
    if (entry.name.starts_with('.')) continue;
    if (entry.stat.is_directory) {
      listing.directories.push_back(entry.name);
    } else if (called_image(entry.name)) {
      listing.images.push_back(entry.name);
      listing.image_etags.push_back(entry.stat.etag);
    } else {
      listing.others.push_back(entry.name);
    }
  }
  return listing;
}

[[noreturn]] void cannot_read(const std::string& path, const std::error_code& error) {
  const std::string text = fmt::format("the directory '{}' cannot be read: {}", path, error.message());
  if (error == std::errc::no_such_file_or_directory) throw NotFound(text);
  throw IoError(text);
}

}  // namespace

std::string real_directory(const std::string& path) {
  std::error_code error;
  std::string real = std::filesystem::canonical(path, error).string();
  if (error) cannot_read(path, error);
  return real;
}

Listing list_directory(const std::string& path) {
  namespace fs = std::filesystem;
  if (file::is_remote(path)) return list_objects(path);
  Listing listing;
  std::error_code error;
  for (fs::directory_iterator entry(path, error), end; entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with('.')) continue;
    std::error_code status;
    if (entry->is_directory(status))
      listing.directories.push_back(name);
    else if (called_image(entry->path()))
      listing.images.push_back(name);
    else
      listing.others.push_back(name);
  }
  if (error) cannot_read(path, error);  // at the first entry or a later one: either ends the loop
  sort(listing);
  return listing;
}

std::string inside(const std::string& directory, const std::string& name) {
  return (std::filesystem::path(directory) / name).string();
}

std::string some_of(const std::vector<std::string>& names) {
  constexpr size_t kShown = 5;
  if (names.size() <= kShown) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{} and {} more", fmt::join(std::span(names.data(), kShown), ", "),
                     names.size() - kShown);
}

}  // namespace mox::data::internal
