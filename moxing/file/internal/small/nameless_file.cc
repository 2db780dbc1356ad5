#include "moxing/file/internal/small/nameless_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "moxing/file/internal/descriptor.h"

namespace mox::file::internal {
namespace {

constexpr int kFilePermissions = 0644;

}  // namespace

bool write_nameless(const std::string& path, std::string_view content) {
  const size_t slash = path.rfind('/');
  const std::string parent = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const Descriptor file(::open(parent.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, kFilePermissions));
  if (file.get() < 0) return false;
  write_fully(file.get(), content, path);
  // A name that is taken stays. The short way is not everyone's before Linux 6.10, the other one needs /proc.
  if (::linkat(file.get(), "", AT_FDCWD, path.c_str(), AT_EMPTY_PATH) == 0) return true;
  if (errno == EEXIST) return false;
  const std::string shown = fmt::format("/proc/self/fd/{}", file.get());
  return ::linkat(AT_FDCWD, shown.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

}  // namespace mox::file::internal
