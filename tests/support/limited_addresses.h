// What a process says that may have little more address space than it has.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>

namespace mox {

// Lets this process have `room` bytes beyond those that it has now. For a child process: nothing lifts it.
inline void limit_addresses(size_t room) {
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t bytes = pages * static_cast<size_t>(::sysconf(_SC_PAGESIZE)) + room;
  const rlimit limit = {bytes, bytes};
  if (::setrlimit(RLIMIT_AS, &limit) != 0) ::_exit(2);
}

}  // namespace mox
