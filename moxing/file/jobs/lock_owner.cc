#include "moxing/file/jobs/lock_owner.h"

#include <fmt/format.h>
#include <unistd.h>

#include <climits>

namespace mox::internal {

void write_lock_owner(int descriptor) {
  char host[HOST_NAME_MAX + 1] = {};
  if (::gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
  const std::string owner =
      fmt::format("process {} on {}", ::getpid(), host[0] ? host : "a host without a name");
  [[maybe_unused]] const bool written =
      ::ftruncate(descriptor, 0) == 0 && ::pwrite(descriptor, owner.data(), owner.size(), 0) > 0;
}

std::string lock_owner(int descriptor) {
  char text[400];
  const ssize_t got = ::pread(descriptor, text, sizeof text, 0);
  return got > 0 ? std::string(text, got) : "a process that has not said its number";
}

}  // namespace mox::internal
