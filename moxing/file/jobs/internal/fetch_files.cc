#include "moxing/file/jobs/internal/fetch_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <vector>

#include "moxing/file/copy.h"
#include "moxing/file/jobs/internal/place.h"
#include "moxing/file/jobs/internal/stored_files.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"

namespace mox::file::internal {
namespace {

namespace fs = std::filesystem;

enum class Counts { kHere, kSame, kStore, kBothHaveChanged };

// Of two that have both changed, or of which nothing is known.
Counts compare(const std::string& url, const Stat& there, const std::string& path) {
  if (!begins_with_stored(url, there, path)) return Counts::kBothHaveChanged;
  return there.length == file::stat(path).length ? Counts::kSame : Counts::kHere;
}

Counts what_counts(const std::string& url, const Stat& there, const std::string& path,
                   const StoredFile* last) {
  if (!is_there_as_file(path)) return Counts::kStore;
  if (last && !there.etag.empty() && last->etag == there.etag) return Counts::kHere;
  if (last && last->here == seen_at(path)) return Counts::kStore;
  return compare(url, there, path);
}

ino_t inode_of(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

// Second names of files that a copy may replace. Where it finds that they are the same, it leaves them.
class Asides {
 public:
  explicit Asides(const std::string& place) : place_(place), directory_(aside_of(place)) {}

  void keep(const std::string& name) {
    const std::string from = place_ + "/" + name, to = directory_ + "/" + name;
    make_directories(fs::path(to).parent_path());
    std::error_code has_no_links;
    fs::create_hard_link(from, to, has_no_links);
    if (has_no_links) fs::copy_file(from, to);
    kept_.push_back({name, inode_of(from), seen_at(from)});
  }

  // Removes those that were not replaced; says which were.
  void settle(const std::string& url) {
    if (kept_.empty()) return;
    std::vector<std::string> replaced;
    for (const Kept& kept : kept_) {
      const std::string path = place_ + "/" + kept.name;
      if (is_there(path) && inode_of(path) == kept.inode && seen_at(path) == kept.seen)
        fs::remove(directory_ + "/" + kept.name);
      else
        replaced.push_back(kept.name);
    }
    if (replaced.empty()) {
      fs::remove_all(directory_);
      return;
    }
    log_warning(
        fmt::format("'{}' has other content of {} than this machine has ever sent there, and what is here "
                    "has not been sent: the run goes on with the store's, and what was here is in '{}'",
                    url, some_of(replaced), directory_));
  }

 private:
  struct Kept {
    std::string name;
    ino_t inode;
    Seen seen;
  };
  const std::string place_, directory_;
  std::vector<Kept> kept_;
};

}  // namespace

void fetch_files(const std::string& url, const std::string& place, const std::map<std::string, Stat>& there) {
  StoredFiles stored = read_stored_files(place);
  std::vector<std::string> wanted, same;
  Asides asides(place);
  for (const auto& [name, stat] : there) {
    const auto last = stored.find(name);
    const Counts counts = what_counts(url + "/" + name, stat, place + "/" + name,
                                      last == stored.end() ? nullptr : &last->second);
    if (counts == Counts::kSame) same.push_back(name);
    if (counts == Counts::kBothHaveChanged) asides.keep(name);
    if (counts == Counts::kBothHaveChanged || counts == Counts::kStore) wanted.push_back(name);
  }
  const auto keep_known = [&](const std::vector<std::string>& names) {
    for (const std::string& name : names) stored[name] = {there.at(name).etag, seen_at(place + "/" + name)};
    if (!names.empty()) write_stored_files(place, stored);
  };
  keep_known(same);
  if (wanted.empty()) return;  // without names `copy_parallel` would take all there is
  try {
    // What is known to be here must be here after a power cut, too.
    copy_parallel(url, place, {.file_list = wanted, .durable = true});
  } catch (...) {
    asides.settle(url);
    throw;
  }
  asides.settle(url);
  keep_known(wanted);
}

}  // namespace mox::file::internal
