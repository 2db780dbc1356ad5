// Which lines of metrics.jsonl stay where the file has grown too large: the older a step, the fewer lines of
// its time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mox::internal {

struct LoggedLine {
  size_t bytes = 0;
  int64_t step = -1;          // -1: not known; the line stays
  bool is_of_a_step = false;  // else of an evaluation or a prediction
};

// Of lines that follow one another: whether each stays, so that all take `most_bytes` together at most, if
// that can be. The age of a line is its step's distance from the last line's, which therefore stays, also
// behind lines of later steps (of another run). Of the ages from a to 2 a one line stays for each 2^i steps,
// where i grows by one as the age doubles; what is younger than the first such age stays whole, and that age
// is the largest that suffices. The first line of 2^i steps is that of 2^(i - 1), too, so to thin a file
// again and again leaves of its beginning what to thin it once does. Evaluations and predictions are thinned,
// in the same way, only where steps alone are not enough.
std::vector<bool> lines_that_stay(std::span<const LoggedLine> lines, uint64_t most_bytes);

}  // namespace mox::internal
