// Any bytes are a list of hosts and a rank table, or a DataError.
#include <cstdint>
#include <string>

#include "moxing/cli/internal/host_slots.h"
#include "runtime/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto check = [](const std::vector<mox::cli::HostSlots>& hosts) {
    MOX_ASSERT(!hosts.empty() && mox::cli::total_slots(hosts) >= static_cast<int>(hosts.size()),
               "each host takes a rank");
  };
  try {
    check(mox::cli::parse_hosts(text, "input"));
  } catch (const mox::DataError&) {
  }
  try {
    check(mox::cli::parse_rank_table(text, "input"));
  } catch (const mox::DataError&) {
  }
  return 0;
}
