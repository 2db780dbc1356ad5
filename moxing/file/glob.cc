#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "moxing/file/file.h"
#include "moxing/file/internal/pattern.h"
#include "moxing/file/internal/store.h"
#include "moxing/file/path_counts.h"
#include "runtime/base/error.h"

namespace mox::file {
namespace {

using internal::Url;

std::vector<std::string> names_of(const std::string& path) {
  std::vector<std::string> names;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t slash = std::min(path.find('/', begin), path.size());
    names.push_back(path.substr(begin, slash - begin));
    begin = slash + 1;
  }
  return names;
}

// What is looked for, and what was found.
struct Search {
  std::vector<std::string> names;  // patterns
  bool directories_only = false;   // "a*/"
  std::set<std::string> found{};
  std::vector<std::string> above{};  // the directories that "**" goes through now, without links
  PathCounts paths{};
};

void match_in(const Url& directory, size_t index, Search& search);

// Goes on below a directory that "**" stands for.
void match_below(const Url& directory, size_t index, Search& search) {
  if (directory.remote) return match_in(directory, index, search);
  std::error_code gone;
  const std::string real = std::filesystem::canonical(directory.path, gone);
  if (std::find(search.above.begin(), search.above.end(), real) != search.above.end())
    throw IoError(
        fmt::format("cannot list '{}': the link leads to a directory that it lies in", directory.path));
  search.paths.add(fmt::format("{} {}", index, real), directory.path);
  search.above.push_back(real);
  match_in(directory, index, search);
  search.above.pop_back();
}

// Adds what matches the names from `index` on in the directory.
void match_in(const Url& directory, size_t index, Search& search) {
  internal::Store& store = store_of(directory);
  std::vector<DirectoryEntry> entries;
  try {
    entries = store.list(directory, false);
  } catch (const NotFound&) {
    return;  // nothing matches
  } catch (const FailedPrecondition&) {
    return;  // nor in a file
  }
  const std::string& name = search.names[index];
  const bool any_depth = name == "**";
  const bool last = index + 1 == search.names.size();
  if (any_depth && !last) match_in(directory, index + 1, search);
  for (const DirectoryEntry& entry : entries) {
    if (any_depth ? entry.name.starts_with('.') : !internal::matches_pattern(entry.name, name)) continue;
    const bool is_directory = entry.stat.is_directory;
    const Url below = is_directory ? join_directory(directory, entry.name) : join(directory, entry.name);
    if (last && (is_directory || !search.directories_only))
      search.found.insert(to_string(below) +
                          (search.directories_only && !below.path.ends_with('/') ? "/" : ""));
    if (!is_directory) continue;
    if (any_depth)
      match_below(below, index, search);
    else if (!last)
      match_in(below, index + 1, search);
  }
}

}  // namespace

std::vector<std::string> glob(const std::string& pattern) {
  Url base = internal::parse_url(pattern);
  Search search{.names = names_of(base.path)};
  std::vector<std::string>& names = search.names;
  size_t plain = 0;  // names at the begin that are no patterns
  while (plain < names.size() && !internal::is_pattern(names[plain])) ++plain;
  if (plain == names.size()) return exists(pattern) ? std::vector{pattern} : std::vector<std::string>{};
  for (; names.back().empty(); names.pop_back()) search.directories_only = true;
  std::string directory;
  for (size_t i = 0; i < plain; ++i) directory += names[i] + "/";
  const bool is_here = directory.empty() && !base.remote;
  base.path = is_here ? "." : directory;
  names.erase(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(plain));
  match_below(base, 0, search);
  std::vector<std::string> paths;
  for (const std::string& path : search.found) paths.push_back(is_here ? path.substr(2) : path);  // "./"
  return paths;
}

}  // namespace mox::file
