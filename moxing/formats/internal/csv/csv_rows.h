// The rows of a table of text, taken off it as a whole or block by block, on all cores: what is learnt of
// them and what is refused is the same, whatever the blocks are and however many cores there are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "moxing/formats/internal/byte_source.h"
#include "moxing/formats/internal/csv/csv_slices.h"
#include "moxing/formats/text_list.h"

namespace mox::data::internal {

struct CsvRows {
  size_t columns = 0;
  TextList texts;  // the names of the columns, then the cells row by row
  std::vector<uint32_t> lines;
  std::vector<uint32_t> sorted_columns;  // their places in the order of their names
};

// Of a text, in whose memory the cells stay, and whose bytes are known to be UTF-8. `name` stands for the
// path in messages. Throws as read_csv_table.
CsvRows csv_rows(std::string text, char delimiter, const std::string& name, const CsvSlices& slices = {});

// Of all that is left of a text, of which a few blocks are in memory beside the rows. Sets its CRC-32. Throws
// as read_csv_table; IoError if the rows do not fit into memory.
CsvRows csv_rows(ByteStream& text, size_t block_bytes, char delimiter, const std::string& name,
                 uint32_t* checksum);

// What may be the matter with a file whose lines do not fit together, of one column called `only`.
std::string delimiter_advice(std::string_view only, char delimiter);

}  // namespace mox::data::internal
