#include "runtime/refusals/out_of_memory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>

#include "runtime/base/error.h"
#include "runtime/base/resource_limits.h"

namespace mox::internal {

void throw_out_of_memory(std::string_view what, std::string_view advice) {
  throw OutOfMemory(fmt::format("{} takes more memory than there is: {}; {}", what, memory_held(), advice));
}

std::string memory_held() {
  size_t addresses = 0, resident = 0;  // in pages
  std::ifstream("/proc/self/statm") >> addresses >> resident;
  const auto mebibytes = [page = static_cast<size_t>(::sysconf(_SC_PAGESIZE))](size_t pages) {
    return (pages * page) >> 20;
  };
  return fmt::format("the process holds {} MiB ({} MiB of addresses) of the {} MiB that it may have",
                     mebibytes(resident), mebibytes(addresses), available_memory() >> 20);
}

}  // namespace mox::internal
