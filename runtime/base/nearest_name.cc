#include "runtime/base/nearest_name.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace mox::internal {
namespace {

size_t levenshtein_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t substituted = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& letter : lower)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return lower;
}

std::string nearest_name(std::string_view name, std::span<const std::string> known) {
  constexpr size_t kLongestName = 256;  // the distance takes time in the product of the lengths
  if (name.size() > kLongestName) return "";
  std::string best;
  size_t best_distance = 0;
  const std::string lower = lower_case(name);
  for (const std::string& candidate : known) {
    if (lower_case(candidate) == lower) return candidate;
    const size_t distance = levenshtein_distance(name, candidate);
    const size_t limit = std::max<size_t>(2, std::max(name.size(), candidate.size()) / 3);
    // Where not a letter is left in its place, it is another name.
    if (distance >= std::max(name.size(), candidate.size())) continue;
    if (distance <= limit && (best.empty() || distance < best_distance)) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string unknown_name_message(std::string_view kind, std::string_view name,
                                 const std::vector<std::string>& known) {
  const std::string nearest = nearest_name(name, known);
  std::string text = fmt::format("unknown {} \"{}\"", kind, name);
  text += nearest.empty() ? "." : fmt::format(": did you mean \"{}\"?", nearest);
  return text + fmt::format(" Known: {}", fmt::join(known, ", "));
}

std::string first_names(std::span<const std::string> names) {
  constexpr size_t kShown = 5;
  if (names.empty()) return "(none)";
  const std::string shown = fmt::format("{}", fmt::join(names.first(std::min(names.size(), kShown)), ", "));
  return names.size() <= kShown ? shown : fmt::format("{} and {} more", shown, names.size() - kShown);
}

}  // namespace mox::internal
