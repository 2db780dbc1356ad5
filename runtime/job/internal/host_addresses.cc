#include "runtime/job/internal/host_addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <iterator>
#include <string_view>

namespace mox::internal {
namespace {

constexpr std::string_view kLoopback = "127.";

// Of the interfaces that have these flags, and none of those.
std::vector<std::string> addresses_of_interfaces(unsigned with, unsigned without) {
  std::vector<std::string> result;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return result;
  for (const ifaddrs* one = all; one; one = one->ifa_next) {
    if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET || (one->ifa_flags & with) != with ||
        (one->ifa_flags & without) != 0)
      continue;
    char text[INET_ADDRSTRLEN];
    const auto* address = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
    if (inet_ntop(AF_INET, &address->sin_addr, text, sizeof text)) result.emplace_back(text);
  }
  freeifaddrs(all);
  return result;
}

}  // namespace

std::vector<std::string> reachable_addresses() {
  std::vector<std::string> result = addresses_of_interfaces(IFF_UP, IFF_LOOPBACK);
  result.insert(result.begin(), "127.0.0.1");
  return result;
}

std::vector<std::string> own_addresses() { return addresses_of_interfaces(0, 0); }

std::vector<std::string> addresses_to_try(const std::vector<std::string>& of_rank_0,
                                          const std::vector<std::string>& own, bool is_local) {
  if (is_local) return of_rank_0;
  std::vector<std::string> result;
  std::ranges::copy_if(of_rank_0, std::back_inserter(result), [&](const std::string& address) {
    return !address.starts_with(kLoopback) && std::ranges::find(own, address) == own.end();
  });
  return result;
}

}  // namespace mox::internal
