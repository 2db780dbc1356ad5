// The hosts of a job, from the files that users and schedulers have.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace mox::cli {

inline constexpr size_t kMostHosts = 16'384;  // of a job

struct HostSlots {
  std::string host;
  int slots = 0;
  bool operator==(const HostSlots&) const = default;
};

// The rank table of HCCL, version 1.0, JSON: {"status": "completed", "server_count": "1", "server_list":
// [{"server_id": "10.0.0.1", "device": [{"rank_id": "0"}, ...]}, ...]}; one rank for each device. The hosts
// in the order of their ranks: those of one server follow each other. Throws DataError, saying how to go on,
// for a table that is not complete, contradicts itself, or names no hosts (version 2.0), and for more than
// kMostHosts; FailedPrecondition for one whose status says that it is still being written; IoError if it
// cannot be read.
std::vector<HostSlots> read_rank_table(const std::string& path);
// The same of a text; `path` is for messages.
std::vector<HostSlots> parse_rank_table(const std::string& text, const std::string& path);

// One host a line, with the ranks that it takes, as Open MPI, MPICH and schedulers write them: "10.0.0.1
// slots=4 max_slots=8", "a:4", "a 4 all.q UNDEFINED" (Grid Engine); 1 where nothing is said. A host that is
// repeated (PBS_NODEFILE) takes all of it. "#" begins a comment. Throws as read_rank_table does, and for
// more than 16,384 hosts or 1,000,000 ranks.
std::vector<HostSlots> read_hosts(const std::string& path);
std::vector<HostSlots> parse_hosts(std::string text, const std::string& path);

int total_slots(const std::vector<HostSlots>& hosts);

// Whether the host is this machine by a name that says nothing else: localhost, 127.0.1.1, ::1.
bool is_loopback(const std::string& host);

// Throws DataError if `host` cannot be handed to mpirun and ssh as a name or an address; `where`
// begins the message.
void require_host(const std::string& host, const std::string& where);

// How many of `wanted` ranks can start where only `slots` are left: the largest number up to it that divides
// `wanted`, so that logical replicas that could be spread over `wanted` ranks still can. 0 if there
// is no slot.
int ranks_that_fit(int wanted, int slots);

}  // namespace mox::cli
