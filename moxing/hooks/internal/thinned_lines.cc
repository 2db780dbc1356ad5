#include "moxing/hooks/internal/thinned_lines.h"

#include <algorithm>
#include <bit>

namespace mox::internal {
namespace {

// How far the line's step is from that of the last line, which is the youngest whatever the others say.
int64_t age_of(const LoggedLine& line, int64_t last_step) {
  return line.step < last_step ? last_step - line.step : line.step - last_step;
}

// Thins the lines of one kind: `young` is the age from which on they are fewer.
void thin(std::span<const LoggedLine> lines, bool of_steps, int64_t last_step, int64_t young,
          std::vector<bool>& stays) {
  int64_t bucket_before = -1;
  int level_before = -1;
  for (size_t i = 0; i < lines.size(); ++i) {
    const LoggedLine& line = lines[i];
    if (line.step < 0 || line.is_of_a_step != of_steps) continue;
    const int64_t age = age_of(line, last_step);
    const int level = age < young ? 0 : std::bit_width(static_cast<uint64_t>(age / young));
    const int64_t bucket = line.step >> level;
    // Buckets of a level are halves of the next one's, so the first line of the larger stays each time.
    stays[i] = level == 0 || level != level_before || bucket != bucket_before;
    level_before = level;
    bucket_before = bucket;
  }
}

uint64_t bytes_of(std::span<const LoggedLine> lines, const std::vector<bool>& stays) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < lines.size(); ++i)
    if (stays[i]) bytes += lines[i].bytes;
  return bytes;
}

}  // namespace

std::vector<bool> lines_that_stay(std::span<const LoggedLine> lines, uint64_t most_bytes) {
  std::vector<bool> stays(lines.size(), true);
  int64_t last_step = 0, oldest = 0;
  for (const LoggedLine& line : lines)
    if (line.step >= 0) last_step = line.step;
  for (const LoggedLine& line : lines)
    if (line.step >= 0) oldest = std::max(oldest, age_of(line, last_step));
  for (const bool of_steps : {true, false})
    for (int64_t young = std::bit_floor(static_cast<uint64_t>(oldest)); young > 0; young /= 2) {
      if (bytes_of(lines, stays) <= most_bytes) return stays;
      thin(lines, of_steps, last_step, young, stays);
    }
  return stays;
}

}  // namespace mox::internal
