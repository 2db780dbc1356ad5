// The IPv4 addresses of hosts: by which of them rank 0 may be reached, and which of them cannot be its.
#pragma once

#include <string>
#include <vector>

namespace mox::internal {

// Where this host may be reached: the loopback first, then the addresses of the interfaces that are up.
std::vector<std::string> reachable_addresses();
// All that this host has, whatever the state of their interfaces.
std::vector<std::string> own_addresses();

// At which of rank 0's addresses another rank looks for it: on the same machine, `is_local`, at all of them.
// On another one not at the loopback, nor at what that host has itself, `own`: bridges of containers and of
// virtual machines have the same address on every host, and there whoever holds the port answers.
std::vector<std::string> addresses_to_try(const std::vector<std::string>& of_rank_0,
                                          const std::vector<std::string>& own, bool is_local);

}  // namespace mox::internal
