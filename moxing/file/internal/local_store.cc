#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include "moxing/file/internal/descriptor.h"
#include "moxing/file/internal/held/found_entries.h"
#include "moxing/file/internal/held/local_removal.h"
#include "moxing/file/internal/removal_report.h"
#include "moxing/file/internal/store.h"
#include "moxing/file/path_counts.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace mox::file::internal {
namespace {

Stat stat_of(const struct stat& status) {
  Stat stat;
  stat.is_directory = S_ISDIR(status.st_mode);
  stat.length = stat.is_directory ? 0 : status.st_size;
  stat.mtime =
      std::chrono::system_clock::time_point(std::chrono::duration_cast<std::chrono::system_clock::duration>(
          std::chrono::seconds(status.st_mtim.tv_sec) + std::chrono::nanoseconds(status.st_mtim.tv_nsec)));
  return stat;
}

// Among those who append to a file by this way; false if it is not to be had soon. Whoever may read a file
// may lock it, for ever.
bool has_locked(const Descriptor& file) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds kPatience{2};
  constexpr std::chrono::milliseconds kBetweenAttempts{5};
  for (const auto until = Clock::now() + kPatience; ::flock(file.get(), LOCK_EX | LOCK_NB) != 0;) {
    if ((errno != EWOULDBLOCK && errno != EINTR) || Clock::now() > until) return false;
    std::this_thread::sleep_for(kBetweenAttempts);
  }
  return true;
}

[[noreturn]] void refuse_directory(std::string_view doing, const std::string& path) {
  throw FailedPrecondition(fmt::format("cannot {} '{}': it is a directory", doing, path));
}

using FileId = std::pair<dev_t, ino_t>;

// What is below a directory, through links, too.
class Below {
 public:
  Below(bool recursive, std::vector<DirectoryEntry>& entries) : recursive_(recursive), entries_(entries) {}

  // `id`: of the directory `path`.
  void list(const std::string& path, const std::string& prefix, const FileId& id) {
    if (std::find(above_.begin(), above_.end(), id) != above_.end())
      throw IoError(fmt::format("cannot list '{}': the link leads to a directory that it lies in", path));
    paths_.add(fmt::format("{} {}", id.first, id.second), path);
    above_.push_back(id);
    for (const Found& found : entries_of(open_directory(path), path, true)) {
      const std::string name = prefix + found.name;
      entries_.push_back({name, {}, stat_of(found.status)});
      if (recursive_ && S_ISDIR(found.status.st_mode))
        list(fmt::format("{}{}{}", path, path.ends_with('/') ? "" : "/", found.name), name + "/",
             {found.status.st_dev, found.status.st_ino});
    }
    above_.pop_back();
  }

 private:
  const bool recursive_;
  std::vector<DirectoryEntry>& entries_;
  std::vector<FileId> above_;  // the directories that lead to the one that is listed
  PathCounts paths_;
};

class LocalStore : public Store {
 public:
  std::optional<Stat> stat(const Url& url) override {
    struct stat status {};
    if (::stat(url.path.c_str(), &status) == 0) return stat_of(status);
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    throw_system("look at", url.path, errno);
  }

  std::vector<DirectoryEntry> list(const Url& url, bool recursive, const std::stop_token&) override {
    struct stat status {};
    if (::stat(url.path.c_str(), &status) != 0) {
      if (errno == ENOENT || errno == ENOTDIR) throw NotFound(fmt::format("no directory '{}'", url.path));
      throw_system("list", url.path, errno);
    }
    if (!S_ISDIR(status.st_mode))
      throw FailedPrecondition(fmt::format("cannot list '{}': it is a file", url.path));
    std::vector<DirectoryEntry> entries;
    Below(recursive, entries).list(without_slash(url).path, "", {status.st_dev, status.st_ino});
    return entries;
  }

  std::string read(const Url& url) override {
    if (is_directory(url)) refuse_directory("read", url.path);
    return read_file(url.path);
  }

  void write(const Url& url, std::string_view content) override {
    require_file(url, "write");
    require_replaceable_file(url.path);
    make_parent(url);
    write_file_atomically(url.path, content);
  }

  void append(const Url& url, std::string_view content) override {
    require_file(url, "append to");
    make_parent(url);
    const Descriptor file = open_for_writing(url.path, O_WRONLY | O_CREAT | O_APPEND);
    // Others wait, so that what fails can be taken back.
    const bool is_alone = has_locked(file);
    struct stat before {};
    if (::fstat(file.get(), &before) != 0) throw_system("look at", url.path, errno);
    try {
      write_fully(file.get(), content, url.path);
      if (::fsync(file.get()) != 0 && errno != EINVAL) throw_system("flush", url.path, errno);
    } catch (const IoError& error) {
      if (!S_ISREG(before.st_mode)) throw;
      if (!is_alone)
        throw IoError(fmt::format("'{}' may have a part of what should have been appended: {}", url.path,
                                  error.what()));
      if (::ftruncate(file.get(), before.st_size) != 0)
        throw IoError(fmt::format("'{}' has a part of what should have been appended: {}", url.path,
                                  std::strerror(errno)));
      throw;
    }
  }

  void make_directories(const Url& url) override { mox::make_directories(url.path); }

  void make_directory(const Url& url) override {
    const std::string path = without_slash(url).path;
    if (::mkdir(path.c_str(), 0777) == 0) return;
    if (errno == EEXIST)
      throw FailedPrecondition(fmt::format("cannot make the directory '{}': the name is taken", path));
    if (errno == ENOENT)
      throw NotFound(fmt::format("cannot make the directory '{}': the one it lies in is not there", path));
    throw_system("make the directory", path, errno);
  }

  void remove_file(const Url& url) override {
    if (::unlink(url.path.c_str()) == 0) return;
    if (errno == ENOENT || errno == ENOTDIR) throw NotFound(fmt::format("no file '{}'", url.path));
    if (errno == EISDIR) refuse_directory("remove", url.path);
    throw_system("remove", url.path, errno);
  }

  void remove_tree(const Url& url) override {
    if (!is_removable_directory(url)) return remove_file(without_slash(url));
    RemovalReport report;
    remove_directory_tree(without_slash(url).path, report);
    report.throw_if_any(url.path);
  }

  void remove_directory(const Url& url) override {
    const std::string path = without_slash(url).path;
    if (!is_removable_directory(url)) throw_system("remove the directory", path, ENOTDIR);
    if (::rmdir(path.c_str()) == 0) return;
    if (errno == ENOENT) throw NotFound(fmt::format("no directory '{}'", path));
    if (errno == ENOTEMPTY || errno == EEXIST) refuse_full_directory(url);
    throw_system("remove the directory", path, errno);
  }

  void remove_listed(const Url& url, const std::vector<DirectoryEntry>& entries) override {
    if (!is_removable_directory(url)) return remove_file(without_slash(url));
    RemovalReport report;
    remove_listed_tree(without_slash(url).path, entries, report);
    report.throw_if_any(url.path);
  }

 private:
  // False for a file, and for a link, which goes without what it leads to.
  static bool is_removable_directory(const Url& url) {
    const std::string path = without_slash(url).path;
    std::error_code error;
    const auto canonical = std::filesystem::weakly_canonical(path, error);
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) {
      if (errno == ENOENT || errno == ENOTDIR)
        throw NotFound(fmt::format("nothing to remove at '{}'", url.path));
      throw_system("remove", url.path, errno);
    }
    if (!S_ISDIR(status.st_mode)) return false;
    const std::string last = std::filesystem::path(path).filename();
    if (canonical == "/" || last == "." || last == "..")
      throw FailedPrecondition(fmt::format("'{}' is not removed: name the directory itself", url.path));
    return true;
  }
  bool is_directory(const Url& url) {
    const std::optional<Stat> found = stat(url);
    return found && found->is_directory;
  }
  void require_file(const Url& url, std::string_view doing) {
    if (url.path.ends_with('/') || is_directory(url)) refuse_directory(doing, url.path);
  }
  static void make_parent(const Url& url) {
    const std::string parent = std::filesystem::path(url.path).parent_path();
    if (!parent.empty()) mox::make_directories(parent);
  }
};

}  // namespace

Store& local_store() {
  static LocalStore store;
  return store;
}

}  // namespace mox::file::internal
