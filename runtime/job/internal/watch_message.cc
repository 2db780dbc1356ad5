#include "runtime/job/internal/watch_message.h"

#include <algorithm>
#include <charconv>

namespace mox::internal {
namespace {

// The whole text as a number of [least, most].
bool read(std::string_view text, int least, int most, int* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size() && *number >= least && *number <= most;
}

}  // namespace

WatchMessage parse_message(std::string_view line, int ranks) {
  using Kind = WatchMessage::Kind;
  const std::string_view word = line.substr(0, line.find(' '));
  std::string_view rest = line.size() > word.size() ? line.substr(word.size() + 1) : std::string_view();
  WatchMessage message;
  if (word == "fail" || word == "end") {
    const std::string_view status = rest.substr(0, rest.find(' '));
    if (!read(status, 1, kMostStatus, &message.number)) return {};
    rest.remove_prefix(std::min(status.size() + 1, rest.size()));
    message.kind = word == "fail" ? Kind::kFail : Kind::kEnd;
    message.text = rest;
  } else if (word == "ask" && rest.empty()) {
    message.kind = Kind::kAsk;
  } else if (word == "status?" && rest.empty()) {
    message.kind = Kind::kStatusWanted;
  } else if (word == "status" || word == "statuses") {
    message.kind = word == "status" ? Kind::kStatus : Kind::kStatuses;
    message.text = rest;
  } else if (word == "left") {
    message.number = -1;
    if (!rest.empty() && !read(rest, 0, ranks - 1, &message.number)) return {};
    message.kind = Kind::kLeft;
  } else if (word == "finished" && rest.empty()) {
    message.kind = Kind::kFinished;
  }
  return message;
}

}  // namespace mox::internal
