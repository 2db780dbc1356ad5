#include <algorithm>
#include <set>

#include "moxing/file/file.h"
#include "moxing/file/internal/pattern.h"
#include "moxing/file/internal/store.h"
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

// Adds what matches `names` from `index` on in the directory.
void match_in(const Url& directory, const std::vector<std::string>& names, size_t index,
              std::set<std::string>& found) {
  internal::Store& store = store_of(directory);
  std::vector<DirectoryEntry> entries;
  try {
    entries = store.list(directory, false);
  } catch (const NotFound&) {
    return;  // nothing matches
  }
  const bool any_depth = names[index] == "**";
  const bool last = index + 1 == names.size();
  if (any_depth && !last) match_in(directory, names, index + 1, found);
  for (const DirectoryEntry& entry : entries) {
    if (any_depth ? entry.name.starts_with('.') : !internal::matches_pattern(entry.name, names[index]))
      continue;
    const Url below = join(directory, entry.name);
    if (last) found.insert(to_string(below));
    if (entry.stat.is_directory && (any_depth || !last))
      match_in(below, names, any_depth ? index : index + 1, found);
  }
}

}  // namespace

std::vector<std::string> glob(const std::string& pattern) {
  Url base = internal::parse_url(pattern);
  const std::vector<std::string> names = names_of(base.path);
  size_t plain = 0;  // names at the begin that are no patterns
  while (plain < names.size() && !internal::is_pattern(names[plain])) ++plain;
  if (plain == names.size()) return exists(pattern) ? std::vector{pattern} : std::vector<std::string>{};
  std::string directory;
  for (size_t i = 0; i < plain; ++i) directory += names[i] + "/";
  std::set<std::string> found;
  if (directory.empty() && !base.remote) {
    base.path = ".";
    match_in(base, names, plain, found);
    std::vector<std::string> paths;
    for (const std::string& path : found) paths.push_back(path.substr(2));  // "./"
    return paths;
  }
  base.path = directory;
  match_in(base, names, plain, found);
  return {found.begin(), found.end()};
}

}  // namespace mox::file
