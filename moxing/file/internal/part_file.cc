#include "moxing/file/internal/part_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>

#include "moxing/file/internal/parts/part_journal.h"
#include "moxing/file/s3/digest.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/opened_file.h"

namespace mox::file::internal {
namespace {

constexpr mode_t kOwnersAlone = 0600;
constexpr std::string_view kPart = ".moxing.part", kJournal = ".journal";

std::string parent_directory(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path();
  return parent.empty() ? "." : parent;
}

// What a new file of this process is not permitted. To ask umask(2) would change it for other threads.
mode_t umask_of_process() {
  constexpr std::string_view kTitle = "\nUmask:";
  constexpr mode_t kUsual = 022;
  try {
    const std::string status = read_file("/proc/self/status");
    const size_t at = status.find(kTitle);
    if (at == std::string::npos) return kUsual;
    const size_t digits = status.find_first_not_of(" \t", at + kTitle.size());
    mode_t mask = kUsual;
    std::from_chars(status.data() + std::min(digits, status.size()), status.data() + status.size(), mask, 8);
    return mask;
  } catch (const Error&) {
    return kUsual;  // a system without /proc
  }
}

// A file of this name that is ours alone. Another process may give it its final name between
// opening and locking.
Descriptor open_locked(const std::string& path) {
  for (;;) {
    Descriptor file(open_kept_file(path, kOwnersAlone).release());
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0)
      throw IoError(fmt::format("'{}' is being written by another process", path));
    struct stat ours {
    }, named{};
    if (::fstat(file.get(), &ours) == 0 && ::stat(path.c_str(), &named) == 0 && ours.st_ino == named.st_ino &&
        ours.st_dev == named.st_dev) {
      [[maybe_unused]] const int changed = ::fchmod(file.get(), kOwnersAlone);  // one of an earlier version
      return file;
    }
  }
}

}  // namespace

PartFile::PartFile(std::string path, std::string part_path, mode_t permissions)
    : path_(std::move(path)),
      part_path_(std::move(part_path)),
      journal_path_(part_path_ + std::string(kJournal)),
      permissions_(permissions) {
  require_replaceable_file(path_);
  file_ = open_locked(part_path_);
}

void PartFile::begin(const std::string& source, int64_t size) {
  std::string journal;
  try {
    journal = read_file(journal_path_);
  } catch (const NotFound&) {
  }
  const std::string title = source + "\n";
  struct stat status {};
  const bool continues =
      journal.starts_with(title) && ::fstat(file_.get(), &status) == 0 && status.st_size == size;
  if (continues) {
    recorded_ = parse_part_journal(std::string_view(journal).substr(title.size()));
  } else {
    empty();
    if (const int error = ::posix_fallocate(file_.get(), 0, size);
        error == ENOSPC || error == EFBIG || error == EDQUOT) {
      discard();
      throw_system("make room for", part_path_, error);
    } else if (error && ::ftruncate(file_.get(), size) != 0) {
      throw_system("write", part_path_, errno);
    }
  }
  journal_ = Descriptor(open_kept_file(journal_path_, kOwnersAlone).release());
  if (::fcntl(journal_.get(), F_SETFL, O_APPEND) != 0 || (!continues && ::ftruncate(journal_.get(), 0) != 0))
    throw_system("write", journal_path_, errno);
  if (continues && !journal.ends_with('\n')) write_fully(journal_.get(), "\n", journal_path_);
  if (!continues) write_fully(journal_.get(), title, journal_path_);
}

std::string PartFile::recorded(int64_t index) const {
  const auto found = recorded_.find(index);
  return found == recorded_.end() ? "" : found->second;
}

void PartFile::write(std::string_view content, int64_t offset) {
  write_fully_at(file_.get(), content, offset, part_path_);
}

void PartFile::record(int64_t index, const std::string& md5) {
  const std::lock_guard lock(mutex_);
  write_fully(journal_.get(), part_journal_line(index, md5), journal_path_);
}

std::string PartFile::read(int64_t offset, int64_t length) const {
  return read_fully_at(file_.get(), offset, length, part_path_);
}

void PartFile::clear() {
  if (empty()) ::unlink(journal_path_.c_str());
}

bool PartFile::empty() {
  recorded_.clear();
  // Not where there is nothing: ext4 writes a file that was once emptied to the disk when it is closed, which
  // costs small files half of their time and large ones more.
  struct stat status {};
  if (::fstat(file_.get(), &status) == 0 && status.st_size == 0) return false;
  if (::ftruncate(file_.get(), 0) != 0) throw_system("write", part_path_, errno);
  return true;
}

void PartFile::publish(bool durable) {
  // Where that is refused, the file system has no permissions: the file is this user's.
  const mode_t permissions = exact_permissions_
                                 ? *exact_permissions_
                                 : permissions_ & permissions_in_place_of(path_) & ~umask_of_process();
  [[maybe_unused]] const int changed = ::fchmod(file_.get(), permissions);
  if (durable) sync_file(file_.get(), part_path_);
  if (::rename(part_path_.c_str(), path_.c_str()) != 0)
    throw_system("rename a finished file to", path_, errno);
  if (journal_.get() >= 0) ::unlink(journal_path_.c_str());
  if (durable) sync_directory(parent_directory(path_));
}

void PartFile::discard() {
  ::unlink(journal_path_.c_str());
  ::unlink(part_path_.c_str());
}

std::string part_name(const std::string& name, const std::set<std::string>& taken) {
  constexpr size_t kLongestName = 255, kDigits = 16;
  const size_t begin = name.rfind('/') + 1;  // 0: there is no slash
  for (std::string end(kPart);; end += '~') {
    std::string last = name.substr(begin);
    const size_t room = kLongestName - end.size() - kJournal.size();
    if (last.size() > room)
      last =
          fmt::format("{}.{}", last.substr(0, room - kDigits - 1), s3::hex(s3::md5(last)).substr(0, kDigits));
    std::string part = name.substr(0, begin) + last + end;
    if (!taken.contains(part) && !taken.contains(part + std::string(kJournal))) return part;
  }
}

int64_t disk_taken_by(const std::string& part_path) {
  constexpr int64_t kBlock = 512;  // of st_blocks, whatever the file system's own are
  struct stat status {};
  if (::lstat(part_path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return 0;
  return kBlock * status.st_blocks;
}

void require_free_disk(const std::string& path, int64_t bytes, const std::function<int64_t()>& taken) {
  std::filesystem::path place = std::filesystem::absolute(path);
  while (place.has_relative_path() && !is_there(place)) place = place.parent_path();
  struct statvfs status {};
  if (::statvfs(place.c_str(), &status) != 0) return;  // it will say so itself
  const auto free = static_cast<int64_t>(status.f_bavail) * static_cast<int64_t>(status.f_frsize);
  if (free < bytes && taken) bytes -= taken();
  if (free < bytes)
    throw IoError(
        fmt::format("{} bytes are to be written to '{}', whose disk has {} left", bytes, path, free));
}

}  // namespace mox::file::internal
