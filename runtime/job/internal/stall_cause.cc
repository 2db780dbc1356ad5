#include "runtime/job/internal/stall_cause.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

namespace mox::internal {
namespace {

constexpr char kSeparator = '\t', kBetweenRanks = '\f';

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

}  // namespace

std::string RankStatus::to_line() const {
  return fmt::format("{1}{0}{2}{0}{3}{0}{4}", kSeparator, step, doing, waits_in, fmt::join(missing, " "));
}

RankStatus RankStatus::from_line(std::string_view line) {
  const auto fields = fields_of(line);
  RankStatus status;
  if (fields.size() != 4 || !read(fields[0], &status.step)) return {};
  status.doing = fields[1];
  status.waits_in = fields[2];
  for (std::string_view rest = fields[3]; !rest.empty();) {
    const size_t length = std::min(rest.find(' '), rest.size());
    if (!read(rest.substr(0, length), &status.missing.emplace_back())) return {};
    rest.remove_prefix(std::min(length + 1, rest.size()));
  }
  status.answers = true;
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
    statuses[rank] = RankStatus::from_line(one);
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
