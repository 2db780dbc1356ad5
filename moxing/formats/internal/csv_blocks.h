// CSV files of this machine read in blocks, so that the text is never in memory as a whole.
#pragma once

#include <cstddef>
#include <string>

#include "moxing/formats/csv.h"

namespace mox::data::internal {

// A line that is longer has no end that it should have: the file is none of lines.
inline constexpr size_t kLongestLine = size_t{256} << 20;

struct CsvBlocks {
  size_t bytes = size_t{32} << 20;  // read at a time, 1 or more
  size_t longest_line = kLongestLine;
};

// As read_csv, whatever the blocks are.
Array read_csv_in_blocks(const std::string& path, const CsvOptions& options, const CsvBlocks& blocks = {});

// The first line that is not empty, without its end; empty if there is none. Throws as read_csv.
std::string first_csv_line(const std::string& path, const CsvBlocks& blocks = {.bytes = size_t{64} << 10,
                                                                               .longest_line = kLongestLine});

}  // namespace mox::data::internal
