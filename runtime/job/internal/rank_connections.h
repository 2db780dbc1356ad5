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

// Between a rank and rank 0.
struct RankConnection {
  int socket = -1;
  std::string key;  // both know it, and nobody in their middle: it signs what they say (signed_lines.h)
};

// Rank 0: the connections of the ranks 1 to `ranks` - 1, in their order. All greetings are read at the same
// time, so that a stranger who connects and is silent delays nobody; a second one of a rank is refused. There
// is room for as many that have proved nothing as displacement.h says, which also says who goes then. Closes
// the listener. Throws IoError naming the ranks (by `names`) that have not come in `patience`.
std::vector<RankConnection> accept_ranks(const RankListener& listener, const std::vector<std::string>& names,
                                         std::chrono::milliseconds patience);

// Any other rank: its connection to rank 0, of which host_addresses.h says where it may be. It is asked at
// all of these addresses at the same time, so that whoever is silent at one of them delays nobody, and
// whoever answers proves to be rank 0, or is left. `is_local`: on rank 0's own machine. Throws IoError, also
// for what is no invitation, and if rank 0 does not answer in `patience`.
RankConnection connect_to_rank_0(const std::string& invitation, int rank, bool is_local,
                                 std::chrono::milliseconds patience = std::chrono::seconds(30));

// Throws IoError.
[[noreturn]] void cannot_watch(const std::string& why);

int milliseconds_until(std::chrono::steady_clock::time_point until);  // for poll

// Writes the text and a line's end; false if the connection is gone.
bool write_line(int socket, std::string_view line);

}  // namespace mox::internal
