// The text of a CSV file in slices, which all cores take side by side. What they give does not depend on how
// many cores there are, nor on where the slices end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/base/function_ref.h"

namespace mox::data::internal {

struct CsvSlices {
  size_t bytes = size_t{1} << 20;  // of each, or some more: to the end of a line or a row
  int cores = 0;                   // 0: all that this process may use, with the quota of its control groups
  int cores_to_use() const;
};

// Calls take(i) for each i < count, on several threads.
void take_on_all_cores(size_t count, const CsvSlices& slices, FunctionRef<void(size_t i)> take);

// The place of the first begin of a row that lies `bytes` or more behind `begin`, the begin of another one;
// the text's size if there is none. Cells in quotes may hold line ends. Behind a row that is no CSV the place
// may be any.
size_t next_row(std::string_view text, size_t begin, size_t bytes, char delimiter);

// As crc32 (runtime/base/file.h) and utf8_prefix (runtime/text/utf8.h).
uint32_t crc32_of_slices(std::string_view text, uint32_t previous, const CsvSlices& slices = {});
size_t utf8_prefix_of_slices(std::string_view text, const CsvSlices& slices = {});

}  // namespace mox::data::internal
