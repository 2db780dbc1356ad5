#include "moxing/file/internal/remove_others.h"

#include <cerrno>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "moxing/file/internal/descriptor.h"
#include "moxing/file/internal/held/local_removal.h"
#include "moxing/file/internal/removal_report.h"
#include "moxing/file/internal/store.h"
#include "moxing/file/s3/store_error.h"
#include "runtime/base/error.h"

namespace mox::file::internal {
namespace {

struct Unwanted {
  std::string name;
  bool is_directory = false;  // and no link to one
};

bool has_one_above(const std::string& name, const std::set<std::string>& directories) {
  for (size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1))
    if (directories.contains(name.substr(0, slash))) return true;
  return false;
}

bool is_link(const Url& url) {
  std::error_code ignored;
  return !url.remote && std::filesystem::is_symlink(url.path, ignored);
}

// What is in a directory comes behind it.
std::vector<Unwanted> unwanted_in(const Url& source, const Url& target, const std::stop_token& stop) {
  std::set<std::string> files, directories, links;
  for (DirectoryEntry& entry : store_of(source).list(source, true, stop))
    (entry.stat.is_directory ? directories : files).insert(std::move(entry.name));
  std::vector<Unwanted> unwanted;
  // A store may have a file of its name, too.
  for (DirectoryEntry& entry : store_of(target).list(as_directory(target), true, stop)) {
    if (has_one_above(entry.name, links)) continue;  // which is elsewhere, even if the link itself is wanted
    const bool is_directory = entry.stat.is_directory;
    const bool leads_elsewhere = is_directory && is_link(join(target, entry.name));
    if (leads_elsewhere) links.insert(entry.name);
    if ((is_directory ? directories : files).contains(entry.name)) continue;
    unwanted.push_back({std::move(entry.name), is_directory && !leads_elsewhere});
  }
  return unwanted;
}

constexpr std::string_view kGone = "gone";  // by itself

std::string_view why_kept(bool is_directory) {
  return is_directory ? "something has come into it meanwhile" : "a directory has come into its place";
}

// Both say why the entry stays: "" if it was removed.
std::string_view remove_local(EntriesBelow& below, const Unwanted& entry, const Url& url) {
  switch (const int error = below.remove(entry.name, entry.is_directory)) {
    case 0:
      return "";
    case ENOENT:
      return kGone;
    case EEXIST:
    case ENOTEMPTY:
    case EISDIR:
      return why_kept(entry.is_directory);
    case ELOOP:
    case ENOTDIR:
      return why_it_stays(error);
    default:
      throw_system(entry.is_directory ? "remove the directory" : "remove", url.path, error);
  }
}

std::string_view remove_remote(const Unwanted& entry, const Url& url) {
  try {
    entry.is_directory ? store_of(url).remove_directory(url) : store_of(url).remove_file(url);
    return "";
  } catch (const NotFound&) {
    return kGone;  // somebody else has removed it, or the store has no object that stands for it
  } catch (const FailedPrecondition&) {
    return why_kept(entry.is_directory);
  }
}

}  // namespace

int64_t remove_others(const Url& source, const Url& target, const std::stop_token& stop) {
  int64_t removed = 0;
  RemovalReport report;
  std::set<std::string> leading_to_kept;  // directories, of which the innermost is named
  std::optional<EntriesBelow> local;
  if (!target.remote) local.emplace(hold_directory(target.path));
  const std::vector<Unwanted> unwanted = unwanted_in(source, target, stop);
  for (auto entry = unwanted.rbegin(); entry != unwanted.rend(); ++entry) {
    if (stop.stop_requested()) throw s3::Cancelled("cancelled; not all has been removed that should be");
    if (entry->is_directory && leading_to_kept.contains(entry->name)) continue;
    const Url url = entry->is_directory ? join_directory(target, entry->name) : join(target, entry->name);
    const std::string_view why = local ? remove_local(*local, *entry, url) : remove_remote(*entry, url);
    if (why == kGone) continue;
    if (why.empty()) {
      removed += !entry->is_directory;
      continue;
    }
    report.keep(to_string(url), why);
    for (size_t slash = entry->name.find('/'); slash != std::string::npos;
         slash = entry->name.find('/', slash + 1))
      leading_to_kept.insert(entry->name.substr(0, slash));
  }
  report.throw_if_any(to_string(target));
  return removed;
}

}  // namespace mox::file::internal
