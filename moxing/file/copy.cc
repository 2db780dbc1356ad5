#include "moxing/file/copy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include "moxing/file/file.h"
#include "moxing/file/internal/copy_task.h"
#include "moxing/file/internal/part_file.h"
#include "moxing/file/internal/remove_others.h"
#include "moxing/file/internal/same_place.h"
#include "moxing/file/internal/small/small_downloads.h"
#include "moxing/file/internal/store.h"
#include "moxing/file/s3/store_error.h"
#include "moxing/file/store_client.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace mox::file {
namespace {

using internal::CopyItem;
using internal::CopyRun;
using internal::parse_url;
using internal::SmallDownloads;
using internal::store_of;
using internal::Url;

constexpr size_t kMostNamesShown = 20;

void require_threads(const CopyOptions& options) {
  if (options.threads < 1 || options.threads > 1024)
    throw InvalidArgument(fmt::format("a copy takes 1 to 1024 threads, not {}", options.threads));
}

// What stands in the way of a name below a local directory; empty: nothing.
std::string trouble_with(const std::string& name) {
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = std::string_view(name).substr(begin, end - begin);
    if (part.empty()) return "a file system has no empty names";
    if (part == "." || part == "..") return "it would lie elsewhere";
    if (part.size() > 255) return "a file system has no names of more than 255 bytes";
    if (part.find('\0') != std::string_view::npos) return "a file system has no names with a zero byte";
    begin = end + 1;
  }
  return "";
}

void require_two(const Url& from, const Url& to) {
  if (internal::is_same_file(from, to))
    throw InvalidArgument(fmt::format("'{}' and '{}' are the same file", to_string(from), to_string(to)));
}

CopyReport end_of(CopyRun& run) {
  run.workers.wait();
  run.show_progress(true);
  std::vector<std::string> missing = run.what_is_missing();
  const CopyReport report = run.report();
  // A file that got lost on its way must not look like one that has arrived.
  if (missing.empty() && report.files != run.files_found())
    missing.push_back(
        "files of which neither arrival nor failure was reported, which is a fault of the copy");
  if (missing.empty()) return report;
  const size_t shown = std::min(missing.size(), kMostNamesShown);
  std::string text =
      fmt::format("{}{} of {} files ({} bytes) have arrived; missing {}:\n  {}",
                  run.options.stop.stop_requested() ? "cancelled: " : "", report.files, run.files_found(),
                  report.bytes, missing.size(), fmt::join(missing.begin(), missing.begin() + shown, "\n  "));
  if (missing.size() > shown) text += fmt::format("\n  and {} more", missing.size() - shown);
  if (run.options.stop.stop_requested()) throw s3::Cancelled(text + "\nthe same command goes on from here");
  throw IoError(text + "\nthe same command tries these again");
}

std::shared_ptr<s3::Client> client_for(const Url& from, const Url& to) {
  return from.remote || to.remote ? store_client() : nullptr;
}

// What files on their way to `to` have of the disk, each at most what it will need.
int64_t taken_by_parts(const Url& to, const std::vector<DirectoryEntry>& entries,
                       const std::set<std::string>& files) {
  int64_t taken = 0;
  for (const DirectoryEntry& entry : entries)
    if (!entry.stat.is_directory)
      taken += std::min(entry.stat.length,
                        internal::disk_taken_by(join(to, internal::part_name(entry.name, files)).path));
  return taken;
}

void make_directory_of(CopyRun& run, const std::string& name, const Url& from, const Url& to,
                       const std::string& trouble) {
  try {
    if (!trouble.empty()) throw InvalidArgument(trouble);
    if (to.remote)
      store_of(to).make_directories(join_directory(to, name));
    else if (from.remote)
      internal::make_directory_below(run.target, name);
    else
      internal::make_directory_like(join(from, name).path, run.target, name);
    run.made_directory();
  } catch (const Error& error) {
    run.missing(name + "/", error.what());
  }
}

// Adds what is below `from`, directories first.
void add_tree(const std::shared_ptr<CopyRun>& run, const Url& from, const Url& to) {
  const std::vector<DirectoryEntry> entries = store_of(from).list(from, true, run->options.stop);
  std::map<std::string, Stat> there;
  if (run->options.skip_same) {
    try {
      // A store may have a file of this name, too.
      for (DirectoryEntry& entry : store_of(to).list(as_directory(to), true, run->options.stop))
        if (!entry.stat.is_directory) there.emplace(std::move(entry.name), std::move(entry.stat));
    } catch (const NotFound&) {
    }
  }
  std::set<std::string> files, with_content;
  int64_t bytes = 0;
  for (const DirectoryEntry& entry : entries) {
    const size_t slash = entry.name.rfind('/');
    if (slash != std::string::npos) with_content.insert(entry.name.substr(0, slash));
    if (entry.stat.is_directory) continue;
    files.insert(entry.name);
    const auto found = there.find(entry.name);
    const int64_t kept = found == there.end() ? 0 : std::min(found->second.length, entry.stat.length);
    if (__builtin_add_overflow(bytes, entry.stat.length - kept, &bytes))
      throw DataError(
          fmt::format("the files below '{}' are listed with more bytes in all than 2^63: no store "
                      "has so many, the listing is wrong",
                      to_string(from)));
  }
  if (!to.remote)
    internal::require_free_disk(to.path, bytes, [&] { return taken_by_parts(to, entries, files); });
  for (const DirectoryEntry& entry : entries) {
    const std::string trouble = to.remote ? "" : trouble_with(entry.name);
    if (entry.stat.is_directory) {
      // A file in the way, or a name that cannot be: the files below say so, and an empty
      // directory does here.
      if (with_content.contains(entry.name) && (to.remote || !trouble.empty() || files.contains(entry.name)))
        continue;
      make_directory_of(*run, entry.name, from, to, trouble);
      continue;
    }
    run->found(1, entry.stat.length);
    if (!trouble.empty()) {
      run->missing(entry.name.empty() ? to_string(join(from, "")) : entry.name, trouble);
      continue;
    }
    if (!to.remote && with_content.contains(entry.name)) {
      run->missing(entry.name,
                   "there is a directory of this name, too, and a file system has one of the two");
      continue;
    }
    CopyItem item{entry.name, join(from, entry.name), join(to, entry.name), entry.stat, std::nullopt, true};
    if (const auto found = there.find(entry.name); found != there.end()) item.destination = found->second;
    bool is_new = from.remote && !to.remote && run->options.skip_same && !item.destination;
    if (!to.remote) {
      const std::string part = internal::part_name(entry.name, files);
      item.part_path = join(to, part).path;
      is_new = is_new && !there.contains(part);
    }
    if (is_new && SmallDownloads::takes(*run, item))
      run->small->add(run, std::move(item));
    else
      run->workers.add(
          [run, item = std::move(item)]() mutable { internal::copy_file(run, std::move(item)); });
  }
}

void add_listed(const std::shared_ptr<CopyRun>& run, const Url& from, const Url& to) {
  const std::set<std::string> names(run->options.file_list.begin(), run->options.file_list.end());
  for (const std::string& name : names) {
    run->found(1, 0);
    const std::string trouble = trouble_with(name);
    if (!trouble.empty()) {
      run->missing(name, trouble);
      continue;
    }
    if (!from.remote && !to.remote) internal::make_directories_like(from, run->target, name);
    CopyItem item{name, join(from, name), join(to, name), std::nullopt, std::nullopt, false};
    if (!to.remote) item.part_path = join(to, internal::part_name(name, names)).path;
    run->workers.add([run, item = std::move(item)]() mutable { internal::copy_file(run, std::move(item)); });
  }
}

CopyReport copy_one(const Url& from, const Url& to, Stat source, const CopyOptions& options) {
  require_two(from, to);
  if (to.path.empty() || to.path.ends_with('/'))
    throw FailedPrecondition(fmt::format("'{}' names a directory; the name of a file is needed{}",
                                         to_string(to), internal::absent_bucket(to)));
  internal::Workers workers(options.threads);
  const auto run = std::make_shared<CopyRun>(options, client_for(from, to), workers);
  run->found(1, source.length);
  CopyItem item{to_string(from), from, to, std::move(source), std::nullopt, false};
  if (!to.remote) item.part_path = internal::part_name(to.path);
  workers.add([run, item = std::move(item)]() mutable { internal::copy_file(run, std::move(item)); });
  return end_of(*run);
}

}  // namespace

CopyReport copy(const std::string& from, const std::string& to, const CopyOptions& options) {
  require_threads(options);
  const Url source = parse_url(from), target = parse_url(to);
  const auto found = store_of(source).stat(source);
  if (!found) throw NotFound(fmt::format("no file '{}'{}", from, internal::absent_bucket(source)));
  if (found->is_directory)
    throw FailedPrecondition(
        fmt::format("copy: '{}' is a directory; copy_parallel copies directories", from));
  if (!target.remote && is_directory(to))
    throw FailedPrecondition(fmt::format("copy: '{}' is a directory; the name of a file is needed", to));
  return copy_one(source, target, *found, options);
}

CopyReport copy_parallel(const std::string& from, const std::string& to, const CopyOptions& options) {
  require_threads(options);
  const Url source = parse_url(from), target = parse_url(to);
  const auto found = internal::stat_of_tree(source);
  if (!found)
    throw NotFound(fmt::format("no file and no directory '{}'{}", from, internal::absent_bucket(source)));
  if (!found->is_directory) return copy(from, to, options);
  if (internal::lies_in(target, source))
    throw FailedPrecondition(fmt::format("copy_parallel: '{}' is, or lies in, '{}'", to, from));
  const auto there = store_of(target).stat(as_directory(target));
  if (there && !there->is_directory)
    throw FailedPrecondition(fmt::format("copy_parallel: '{}' is a file", to));
  if (!target.remote && source.remote) store_of(target).make_directories(target);
  if (!target.remote && !source.remote) internal::make_directory_like(source.path, target.path);
  internal::Workers workers(options.threads);
  const auto run = std::make_shared<CopyRun>(options, client_for(source, target), workers);
  if (!target.remote)
    run->target = std::make_shared<const HeldDirectory>(without_slash(target).path, DirectoryLink::kFollowed);
  if (options.file_list.empty())
    add_tree(run, source, target);
  else
    add_listed(run, source, target);
  if (target.remote && run->files_found() == 0 && !there) store_of(target).make_directories(target);
  return end_of(*run);
}

SyncReport sync(const std::string& from, const std::string& to, bool remove_others,
                const CopyOptions& options) {
  if (!options.file_list.empty()) throw InvalidArgument("sync takes no file_list");
  const Url source = parse_url(from), target = parse_url(to);
  if (remove_others && internal::lies_in(source, target))
    throw FailedPrecondition(fmt::format(
        "sync: '{}' is, or lies in, '{}', from which everything else would be removed", from, to));
  SyncReport report{.copied = copy_parallel(from, to, options)};
  if (remove_others) report.removed = internal::remove_others(source, target, options.stop);
  // Where nothing is left in it, a store would not know the directory any more, and a copy from there fail.
  if (report.removed > 0 && target.remote && !store_of(target).stat(as_directory(target)))
    store_of(target).make_directories(target);
  return report;
}

void rename(const std::string& from, const std::string& to) { rename(from, to, {}); }

namespace {

// What a directory holds that has another name now. One that may not be looked into has been renamed
// all the same.
CopyReport moved_report(const Url& directory) {
  CopyReport report;
  try {
    for (const DirectoryEntry& entry : store_of(directory).list(directory, true)) {
      report.files += !entry.stat.is_directory;
      report.directories += entry.stat.is_directory;
      report.bytes += entry.stat.length;
    }
  } catch (const Error&) {
  }
  report.same_files = report.files;
  return report;
}

}  // namespace

CopyReport rename(const std::string& from, const std::string& to, const CopyOptions& given) {
  const Url source = parse_url(from), target = parse_url(to);
  const auto found = internal::stat_of_tree(source);
  if (!found)
    throw NotFound(fmt::format("no file and no directory '{}'{}", from, internal::absent_bucket(source)));
  const auto there = store_of(target).stat(target);
  if (there && (found->is_directory || there->is_directory))
    throw FailedPrecondition(fmt::format("rename: the name '{}' is taken", to));
  if (!found->is_directory) require_two(source, target);
  if (found->is_directory && internal::lies_in(target, source))
    throw FailedPrecondition(fmt::format("rename: '{}' would lie in '{}' itself", to, from));
  if (!source.remote && !target.remote) {
    std::error_code error;
    // The system would put a file into the place of a pipe or a device.
    if (!found->is_directory) internal::require_replaceable_file(target.path);
    // Made as a copy and a store would.
    const std::string parent = std::filesystem::path(without_slash(target).path).parent_path();
    if (!parent.empty() && !is_there(parent)) make_directories(parent);
    std::filesystem::rename(source.path, target.path, error);
    if (!error && !found->is_directory) return {.files = 1, .bytes = found->length, .same_files = 1};
    if (!error) return moved_report(target);
    if (error != std::errc::cross_device_link)
      throw IoError(fmt::format("cannot rename '{}' to '{}': {}", from, to, error.message()));
  }
  CopyOptions options = given;
  options.durable = true;
  if (!found->is_directory) {
    const CopyReport report = copy_one(source, target, *found, options);
    const auto after = store_of(source).stat(source);
    if (!after || after->length != found->length || after->mtime != found->mtime ||
        after->etag != found->etag)
      throw IoError(fmt::format("'{}' has changed while it was copied to '{}'; both stay", from, to));
    store_of(source).remove_file(source);
    return report;
  }
  // A file and a directory of a store may have the same name; the times of stores are in seconds.
  const auto what_is_in = [](const std::vector<DirectoryEntry>& listed) {
    std::map<std::pair<std::string, bool>,
             std::tuple<int64_t, std::chrono::system_clock::time_point, std::string>>
        entries;
    for (const DirectoryEntry& entry : listed)
      entries[{entry.name, entry.stat.is_directory}] = {
          entry.stat.length,
          entry.stat.is_directory ? std::chrono::system_clock::time_point{} : entry.stat.mtime,
          entry.stat.etag};
    return entries;
  };
  const std::vector<DirectoryEntry> before = store_of(source).list(source, true, options.stop);
  const CopyReport report = copy_parallel(from, to, options);
  if (what_is_in(store_of(source).list(source, true, options.stop)) != what_is_in(before))
    throw IoError(fmt::format("'{}' has changed while it was copied to '{}'; both stay", from, to));
  if (!source.remote && !target.remote) internal::give_permissions(source, target, before);
  store_of(source).remove_listed(source, before);
  return report;
}

}  // namespace mox::file
