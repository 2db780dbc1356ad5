// The hosts of a job, from the files that users have.
#pragma once

#include <string>
#include <vector>

namespace mox::cli {

struct HostSlots {
  std::string host;
  int slots = 0;
  bool operator==(const HostSlots&) const = default;
};

// The rank table of HCCL, JSON: {"server_list": [{"server_id": "10.0.0.1", "device": [{"rank_id": "0"},
// ...]}, ...]}; one rank for each device. Throws DataError saying where it is not like that, IoError if it
// cannot be read.
std::vector<HostSlots> read_rank_table(const std::string& path);

// One host a line, with the ranks that it takes: "10.0.0.1 slots=4" (1 where nothing is said); "#" begins a
// comment. Throws as read_rank_table does.
std::vector<HostSlots> read_hosts(const std::string& path);

int total_slots(const std::vector<HostSlots>& hosts);

// How many of `wanted` ranks can start where only `slots` are left: the largest number up to it that divides
// `wanted`, so that logical replicas that could be spread over `wanted` ranks still can. 0 if there is no
// slot.
int ranks_that_fit(int wanted, int slots);

}  // namespace mox::cli
