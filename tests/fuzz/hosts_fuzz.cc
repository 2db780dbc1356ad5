// Any bytes are a list of hosts and a rank table, or an error.
#include <cstdint>
#include <string>

#include "moxing/cli/internal/host_slots.h"
#include "runtime/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto check = [](const std::vector<mox::cli::HostSlots>& hosts) {
    MOX_ASSERT(!hosts.empty() && mox::cli::total_slots(hosts) >= static_cast<int>(hosts.size()),
               "each host takes a rank");
    for (const mox::cli::HostSlots& entry : hosts)
      MOX_ASSERT(entry.host[0] != '-' && entry.host.find("@-") == std::string::npos,
                 "no host is an option of ssh");
  };
  try {
    check(mox::cli::parse_hosts(text, "input"));
  } catch (const mox::DataError&) {
  }
  try {
    check(mox::cli::parse_rank_table(text, "input"));
  } catch (const mox::DataError&) {
  } catch (const mox::FailedPrecondition&) {  // one that is not written to its end yet
  }
  return 0;
}
