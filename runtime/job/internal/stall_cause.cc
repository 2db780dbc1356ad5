#include "runtime/job/internal/stall_cause.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace mox::internal {
namespace {

constexpr char kSeparator = '\t', kBetweenRanks = '\f';
constexpr size_t kMostRanges = 16;

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (size_t end; (end = line.find(kSeparator)) != std::string_view::npos; line.remove_prefix(end + 1))
    fields.push_back(line.substr(0, end));
  fields.push_back(line);
  return fields;
}

template <typename Number>
bool read(std::string_view text, Number* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

// "3 600-1199", the first kMostRanges of them: whoever is at the ends of the chains is found by fewer, too.
std::string ranges_of(std::vector<int> ranks) {
  std::ranges::sort(ranks);
  std::string text;
  size_t count = 0;
  for (size_t begin = 0, end = 0; begin < ranks.size() && count < kMostRanges; begin = end, ++count) {
    for (end = begin + 1; end < ranks.size() && ranks[end] - ranks[end - 1] <= 1;) ++end;
    if (count > 0) text += ' ';
    text += std::to_string(ranks[begin]);
    if (ranks[end - 1] != ranks[begin]) text += fmt::format("-{}", ranks[end - 1]);
  }
  return text;
}

// The ranks of such a text; nothing if they do not ascend, or one is none of `ranks`: somebody else would
// have it name each rank thousands of times.
std::optional<std::vector<int>> ranks_of(std::string_view text, int ranks) {
  std::vector<int> read_ranks;
  for (int next = 0; !text.empty();) {
    const std::string_view range = text.substr(0, text.find(' '));
    const size_t dash = range.find('-', 1);
    int first = 0, last = 0;
    if (!read(range.substr(0, dash), &first)) return std::nullopt;
    last = first;
    if (dash != std::string_view::npos && (!read(range.substr(dash + 1), &last) || last <= first))
      return std::nullopt;
    if (first < next || last >= ranks) return std::nullopt;
    for (next = first; next <= last; ++next) read_ranks.push_back(next);
    text.remove_prefix(std::min(range.size() + 1, text.size()));
  }
  return read_ranks;
}

}  // namespace

std::string RankStatus::to_line() const {
  return fmt::format("{1}{0}{2}{0}{3}{0}{4}", kSeparator, step, doing, waits_in, ranges_of(missing));
}

RankStatus RankStatus::from_line(std::string_view line, int ranks) {
  const auto fields = fields_of(line);
  RankStatus status;
  if (fields.size() != 4 || !read(fields[0], &status.step)) return {};
  std::optional<std::vector<int>> missing = ranks_of(fields[3], ranks);
  if (!missing) return {};
  status.answers = true;
  status.doing = fields[1];
  status.waits_in = fields[2];
  status.missing = std::move(*missing);
  return status;
}

std::string statuses_line(std::span<const std::string> lines) {
  std::string all;
  for (const std::string& one : lines) all += one + kBetweenRanks;
  return all;
}

std::vector<RankStatus> parse_statuses(std::string_view line, size_t ranks) {
  std::vector<RankStatus> statuses(ranks);
  for (size_t rank = 0; rank < ranks && !line.empty(); ++rank) {
    const std::string_view one = line.substr(0, line.find(kBetweenRanks));
    statuses[rank] = RankStatus::from_line(one, static_cast<int>(ranks));
    line.remove_prefix(std::min(one.size() + 1, line.size()));
  }
  return statuses;
}

StallCause find_stall_cause(std::span<const RankStatus> statuses, int from) {
  if (!statuses[0].answers) return {.ranks = {0}, .circle = {}, .waiter = from};
  std::vector<bool> seen(statuses.size(), false);
  std::vector<int> to_follow = {from};
  StallCause cause;
  while (!to_follow.empty()) {
    const int rank = to_follow.back();
    to_follow.pop_back();
    if (rank < 0 || static_cast<size_t>(rank) >= statuses.size() || seen[rank]) continue;
    seen[rank] = true;
    const RankStatus& status = statuses[rank];
    if (status.answers && !status.missing.empty()) {
      to_follow.insert(to_follow.end(), status.missing.begin(), status.missing.end());
      cause.circle.push_back(rank);
    } else if (rank != from) {
      cause.ranks.push_back(rank);
    }
  }
  const auto is_silent = [&](int rank) { return !statuses[rank].answers; };
  if (std::ranges::any_of(cause.ranks, is_silent))
    std::erase_if(cause.ranks, [&](int rank) { return !is_silent(rank); });
  std::ranges::sort(cause.ranks);
  std::ranges::sort(cause.circle);
  const auto lacks_one = [&](int rank) {
    return std::ranges::find_first_of(statuses[rank].missing, cause.ranks) != statuses[rank].missing.end();
  };
  const auto waiter = std::ranges::find_if(cause.circle, lacks_one);
  cause.waiter = lacks_one(from) || waiter == cause.circle.end() ? from : *waiter;
  if (!cause.ranks.empty()) cause.circle.clear();
  return cause;
}

int speaker(std::span<const RankStatus> statuses, int from) {
  for (size_t rank = 0; rank < statuses.size(); ++rank)
    if (statuses[rank].answers && !statuses[rank].missing.empty()) return rank;
  return from;
}

}  // namespace mox::internal
