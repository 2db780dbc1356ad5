#include "runtime/refusals/out_of_memory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <new>

#include "runtime/base/error.h"
#include "runtime/base/resource_limits.h"
#include "runtime/tensor/refused_memory.h"

namespace mox::internal {

void rethrow_naming_memory(FunctionRef<std::string()> what, std::string_view advice) {
  std::string asked;
  try {
    throw;
  } catch (const RefusedMemory& refused) {
    asked = fmt::format("{}; ", refused.what());
  } catch (const std::bad_alloc&) {
  }
  throw OutOfMemory(
      fmt::format("{} takes more memory than there is: {}{}; {}", what(), asked, memory_held(), advice));
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
