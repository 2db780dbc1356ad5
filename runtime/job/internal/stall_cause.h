// Who holds a job up. A rank that waits names those that it lacks messages of, but they may only wait
// themselves, in another operation, for a third one: the cause is where these chains end.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mox::internal {

// What a rank says of itself when it is asked.
struct RankStatus {
  bool answers = false;  // false: nothing was heard; then the other members say nothing
  int64_t step = 0;
  std::string doing;         // "saving a checkpoint", where that is known
  std::string waits_in;      // the operation, if it waits
  std::vector<int> missing;  // for these ranks; empty: it does not wait

  // One line without a line break, and back; what is no such line of one of `ranks` is no answer. It has
  // the first ranges of `missing` ("600-1199"), so few that the lines of thousands of ranks are one message.
  std::string to_line() const;
  static RankStatus from_line(std::string_view line, int ranks);
};

// What rank 0 has heard, in the order of the ranks, as one line of their lines ("" for one that does not
// answer), and back. What is of no rank is passed over; ranks of which nothing is said do not answer.
std::string statuses_line(std::span<const std::string> lines);
std::vector<RankStatus> parse_statuses(std::string_view line, size_t ranks);

struct StallCause {
  // Those at the ends of the chains that begin at a rank, sorted. If some of them do not answer, these alone:
  // whoever else is busy may yet come.
  std::vector<int> ranks;
  // Instead of that, if every chain runs in circles: the ranks that wait for each other.
  std::vector<int> circle;
  // Who lacks messages of `ranks`: `from` itself, or else the first one in its chains.
  int waiter = 0;
};

// `statuses`: of all ranks; that of `from` says what it waits for. Where rank 0 does not answer, through
// which all are asked, it is the cause.
StallCause find_stall_cause(std::span<const RankStatus> statuses, int from);

// The lowest of the ranks that wait, which speaks for all; `from` if none does.
int speaker(std::span<const RankStatus> statuses, int from);

}  // namespace mox::internal
