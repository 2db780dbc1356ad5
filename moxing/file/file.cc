#include "moxing/file/file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "moxing/file/internal/store.h"
#include "moxing/file/s3/store_error.h"
#include "runtime/base/error.h"

namespace mox::file {

using internal::parse_url;
using internal::store_of;
using internal::Url;

namespace internal {

Store& store_of(const Url& url) { return url.remote ? object_store() : local_store(); }

std::optional<Stat> stat_of_tree(const Url& url) {
  auto found = store_of(url).stat(url);
  if (!found || found->is_directory || !url.remote) return found;
  try {
    if (auto directory = store_of(url).stat(as_directory(url))) return directory;
  } catch (const s3::StoreError& refused) {
    // Who may not list the bucket has files alone.
    constexpr int kForbidden = 403;
    if (refused.status() != kForbidden) throw;
  }
  return found;
}

void refuse_full_directory(const Url& url) {
  throw FailedPrecondition(
      fmt::format("'{}' is a directory that is not empty; recursive = true (rm -r) removes it with all in it",
                  to_string(url)));
}

}  // namespace internal

bool is_remote(std::string_view url) { return !url.empty() && parse_url(url).remote; }

std::string local_path(std::string_view url) {
  const Url place = parse_url(url);
  if (place.remote) throw InvalidArgument(fmt::format("'{}' is not a local file", url));
  return place.path;
}

std::string read(const std::string& url) {
  const Url place = parse_url(url);
  return store_of(place).read(place);
}

void write(const std::string& url, std::string_view content) {
  const Url place = parse_url(url);
  store_of(place).write(place, content);
}

void append(const std::string& url, std::string_view content) {
  const Url place = parse_url(url);
  store_of(place).append(place, content);
}

void append_remote(const std::string& url, std::string_view content) {
  const Url place = parse_url(url);
  if (!place.remote)
    throw InvalidArgument(fmt::format("append_remote: '{}' is a local file; append takes both", url));
  store_of(place).append(place, content);
}

bool exists(const std::string& url) {
  const Url place = parse_url(url);
  return store_of(place).stat(place).has_value();
}

bool is_directory(const std::string& url) {
  const auto found = internal::stat_of_tree(parse_url(url));
  return found && found->is_directory;
}

Stat stat(const std::string& url) {
  const Url place = parse_url(url);
  auto found = store_of(place).stat(place);
  if (!found)
    throw NotFound(fmt::format("no file and no directory '{}'{}", url, internal::absent_bucket(place)));
  return *std::move(found);
}

std::vector<DirectoryEntry> scan_dir(const std::string& url, const ListOptions& options) {
  const Url place = parse_url(url);
  std::vector<DirectoryEntry> entries = store_of(place).list(place, options.recursive);
  std::erase_if(entries, [&](const DirectoryEntry& entry) {
    return entry.stat.is_directory ? options.skip_dir : options.skip_file;
  });
  for (DirectoryEntry& entry : entries)
    entry.url =
        to_string(entry.stat.is_directory ? join_directory(place, entry.name) : join(place, entry.name));
  return entries;
}

std::vector<std::string> list_directory(const std::string& url, const ListOptions& options) {
  std::vector<std::string> names;
  for (DirectoryEntry& entry : scan_dir(url, options)) names.push_back(std::move(entry.name));
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<WalkEntry> walk(const std::string& url) {
  const Url place = parse_url(url);
  std::map<std::string, WalkEntry>
      found;  // by the directory's name from the top, with a slash; "" is the top
  found[""].directory = url;
  for (const DirectoryEntry& entry : store_of(place).list(place, true)) {
    const size_t slash = entry.name.rfind('/');
    const std::string parent = slash == std::string::npos ? "" : entry.name.substr(0, slash + 1);
    const std::string name = entry.name.substr(parent.size());
    if (entry.stat.is_directory) {
      found[parent].directories.push_back(name);
      found[entry.name + "/"].directory = to_string(join_directory(place, entry.name));
    } else {
      found[parent].files.push_back(name);
    }
  }
  std::vector<WalkEntry> entries;
  for (auto& [name, entry] : found) {
    std::sort(entry.directories.begin(), entry.directories.end());
    std::sort(entry.files.begin(), entry.files.end());
    entries.push_back(std::move(entry));
  }
  return entries;
}

int64_t get_size(const std::string& url, bool recursive) {
  const Url place = parse_url(url);
  const auto found = recursive ? internal::stat_of_tree(place) : store_of(place).stat(place);
  if (!found)
    throw NotFound(fmt::format("no file and no directory '{}'{}", url, internal::absent_bucket(place)));
  if (!found->is_directory) return found->length;
  if (!recursive)
    throw FailedPrecondition(
        fmt::format("get_size: '{}' is a directory; recursive = true adds its files up", url));
  int64_t bytes = 0;
  for (const DirectoryEntry& entry : store_of(place).list(place, true)) bytes += entry.stat.length;
  return bytes;
}

void make_dirs(const std::string& url) {
  const Url place = parse_url(url);
  store_of(place).make_directories(place);
}

void mk_dir(const std::string& url) {
  const Url place = parse_url(url);
  store_of(place).make_directory(place);
}

void remove(const std::string& url, bool recursive) {
  const Url place = parse_url(url);
  internal::Store& store = store_of(place);
  if (place.remote && place.path.empty())
    throw FailedPrecondition(fmt::format("'{}' is a whole bucket, which is not removed here", url));
  if (recursive) return store.remove_tree(place);
  // A link to a directory is a file here.
  const auto found = store.stat(place);
  if (!place.remote && std::filesystem::is_symlink(internal::without_slash(place).path))
    return store.remove_file(internal::without_slash(place));
  if (found && found->is_directory) {
    if (!store.list(place, false).empty()) internal::refuse_full_directory(place);
    return store.remove_directory(place);
  }
  store.remove_file(place);
}

}  // namespace mox::file
