// The position of a pipeline as text, bound to the data set and the seed it belongs to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mox::data::internal {

struct Cursor {
  std::vector<std::string> stages;  // of the data set (Node::stages)
  uint64_t seed = 0;
  int64_t batches = 0, samples = 0;        // delivered before this position; not counted by shares of groups
  std::vector<uint64_t> state;             // Stream::save
  std::vector<std::string> contents = {};  // content_sample; empty in cursors of before
};

std::string to_json(const Cursor& cursor);

// A stage as it stands where the samples are of float32. Positions do not depend on how exact the numbers of
// the samples are: a run may go on in another precision.
std::string without_precision(std::string stage);

// Throws DataError if `text` is not what to_json wrote, whole.
Cursor cursor_from_json(const std::string& text);

// Throws FailedPrecondition, saying what differs, unless `cursor` belongs to the stages, the seed and the
// contents of `now`. Elements of float32 and of bfloat16 count as the same. Fewer than half of the contents
// may differ, which is logged: a file may have been mended.
void check_cursor(const Cursor& cursor, const Cursor& now);

}  // namespace mox::data::internal
