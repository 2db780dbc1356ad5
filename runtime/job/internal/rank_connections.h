// The connections of all ranks to rank 0, made at the start of a job: how they find each other and keep
// strangers out.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace mox::internal {

struct RankListener {
  int socket = -1;
  std::string secret;
  // What the others are told (by a broadcast): the secret, the port, and the addresses of this host, the
  // loopback first, in words.
  std::string invitation;
};
// Throws IoError.
RankListener listen_for_ranks();

// Rank 0: the sockets of the ranks 1 to `ranks` - 1, in their order. All greetings are read at the same time,
// so that a stranger who connects and is silent delays nobody; a second one of a rank is refused. Where there
// are more than the process may have files open, those go that have been silent longest. Closes the listener.
// Throws IoError naming the ranks (by `names`) that have not come in `patience`.
std::vector<int> accept_ranks(const RankListener& listener, const std::vector<std::string>& names,
                              std::chrono::milliseconds patience);

// Any other rank: its socket to rank 0. Whoever answers at an address proves to be rank 0, or the next
// address is tried. The loopback is for ranks on rank 0's own machine, `is_local`, alone: elsewhere it is
// somebody else's. Throws IoError, also for what is no invitation, and if rank 0 does not answer in
// `patience`.
int connect_to_rank_0(const std::string& invitation, int rank, bool is_local,
                      std::chrono::milliseconds patience = std::chrono::seconds(30));

// Writes the text and a line's end; false if the connection is gone.
bool write_line(int socket, std::string_view line);

}  // namespace mox::internal
