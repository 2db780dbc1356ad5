// What ranks and rank 0 say to each other while a job runs: lines of words.
#pragma once

#include <string>
#include <string_view>

namespace mox::internal {

// A line is no longer; who sends more is not one of the job's ranks.
inline constexpr size_t kLongestMessage = 1 << 20;

// What a process may end with by itself: from 126 on a shell says so of one that did not run, or was killed.
inline constexpr int kMostStatus = 125;

struct WatchMessage {
  enum class Kind {
    kNone,  // no message of this protocol: passed over
    kFail,  // a rank: end the job with the status `number` and this text
    kEnd,   // rank 0: end with this status
    kAsk,
    kStatusWanted,
    kStatus,
    kStatuses,
    kLeft,  // a rank: it has left; rank 0: rank `number` has
    kFinished
  };
  Kind kind = Kind::kNone;
  int number = 0;
  std::string text;
};

// For any bytes; numbers are within their bounds ([1, kMostStatus] for a status, [0, ranks) for a rank; a
// `left` of a rank, without a number, has -1), or the line is none.
WatchMessage parse_message(std::string_view line, int ranks);

}  // namespace mox::internal
