#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "moxing/file/internal/copy_task.h"
#include "moxing/file/internal/part_file.h"
#include "moxing/file/internal/part_sizes.h"
#include "moxing/file/s3/store_error.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace mox::file::internal {
namespace {

constexpr int64_t kPiece = 1 << 20;
constexpr mode_t kPermissions = 0777;

mode_t permissions_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) throw_system("look at", path, errno);
  return status.st_mode & kPermissions;
}

}  // namespace

void make_directory_like(const std::string& like, const std::string& path) {
  const std::string last = without_slash(Url{false, {}, {}, path}).path;
  const std::string parent = std::filesystem::path(last).parent_path();
  if (!parent.empty()) make_directories(parent);
  // Whatever the reason, the other function knows of it, that there is one already, too.
  if (::mkdir(last.c_str(), permissions_of(like) | S_IRWXU) != 0) make_directories(path);
}

void make_directory_like(const std::string& like, const TargetDirectory& top, const std::string& name) {
  make_directory_below(top, name, permissions_of(like) | S_IRWXU);
}

void make_directories_like(const Url& from, const TargetDirectory& top, const std::string& name) {
  try {
    for (size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1))
      make_directory_like(join(from, name.substr(0, slash)).path, top, name.substr(0, slash));
  } catch (const Error&) {
  }
}

void give_permissions(const Url& from, const Url& to, const std::vector<DirectoryEntry>& entries) {
  const auto top = std::make_shared<const HeldDirectory>(without_slash(to).path, DirectoryLink::kRefused);
  const auto give = [&](const std::string& like, std::string_view name) {
    const TargetDirectory directory = directory_below(top, name);
    struct stat status {};
    if (::stat(directory->path().c_str(), &status) != 0) throw_system("look at", directory->name(), errno);
    // What comes with the place, its group for all that lies there, stays.
    const mode_t wanted = (status.st_mode & 07777 & ~kPermissions) | permissions_of(like);
    if (wanted != (status.st_mode & 07777)) ::chmod(directory->path().c_str(), wanted);
  };
  // What is in a directory first: then nobody may have the right to come by any more.
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry)
    if (entry->stat.is_directory) give(join(from, entry->name).path, entry->name);
  give(from.path, "");
}

void copy_local(CopyRun& run, const CopyItem& item) {
  const Descriptor source = open_ordinary_file(item.from.path);
  struct stat before {
  }, after{};
  if (::fstat(source.get(), &before) != 0) throw_system("look at", item.from.path, errno);
  const std::string parent = std::filesystem::path(item.to.path).parent_path();
  if (!parent.empty()) make_directories(parent);

  PartFile part(item.to.path, item.part_path);
  part.permit(before.st_mode & kPermissions);
  try {
    part.clear();  // of what an earlier attempt has left
    require_free_disk(item.to.path, before.st_size);
    s3::Md5 read_md5, written_md5;
    const bool checks = run.options.verify == Verify::kChecksum;
    int64_t at = 0;
    for (;;) {
      if (run.options.stop.stop_requested()) throw s3::Cancelled("cancelled");
      const std::string piece = read_fully_at(source.get(), at, kPiece, item.from.path);
      if (piece.empty()) break;
      if (checks) read_md5.update(piece);
      part.write(piece, at);
      at += piece.size();
      run.sent(piece.size());
    }
    if (::fstat(source.get(), &after) != 0) throw_system("look at", item.from.path, errno);
    if (at != before.st_size || after.st_size != before.st_size ||
        after.st_mtim.tv_sec != before.st_mtim.tv_sec || after.st_mtim.tv_nsec != before.st_mtim.tv_nsec)
      throw IoError(fmt::format("'{}' has changed while it was read", item.from.path));
    if (checks) {
      for (int64_t offset = 0; offset < at; offset += kPiece)
        written_md5.update(part.read(offset, std::min(kPiece, at - offset)));
      if (read_md5.finish() != written_md5.finish())
        throw DataError(fmt::format("'{}' has another content than was written into it", item.to.path));
    }
    part.publish(run.options.durable);
  } catch (...) {
    part.discard();
    throw;
  }
  run.arrived(before.st_size, false, true);
}

}  // namespace mox::file::internal
