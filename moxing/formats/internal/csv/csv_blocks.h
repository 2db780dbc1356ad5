// CSV files read in blocks, so that the text is never in memory as a whole: those of this machine, and
// objects of a store, whose next ranges are on their way while a block is parsed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "moxing/formats/csv.h"
#include "moxing/formats/csv_table.h"
#include "moxing/formats/internal/byte_source.h"
#include "runtime/base/function_ref.h"

namespace mox::data::internal {

// A line that is longer has no end that it should have: the file is none of lines.
inline constexpr size_t kLongestLine = size_t{256} << 20;

struct CsvBlocks {
  size_t bytes = size_t{32} << 20;  // read at a time, 1 or more
  size_t longest_line = kLongestLine;
  int64_t ahead = int64_t{32} << 20;  // of an object of a store, as ForwardObject has it
};

// The text of a file of this machine or of an object. Throws NotFound and IoError.
std::unique_ptr<ByteStream> open_csv(const std::string& path, const CsvBlocks& blocks);

// `take` gets what is not done with and the next block, and whether nothing follows; it says how many bytes
// it is done with, or nothing to end. It refuses what it keeps of a line that is too long.
void read_in_blocks(ByteStream& text, size_t block_bytes,
                    FunctionRef<std::optional<size_t>(std::string_view text, bool is_last)> take);

// As read_csv and read_csv_table, whatever the blocks are.
// `whole_column`: as CsvNumbers takes it.
Array read_csv_in_blocks(const std::string& path, const CsvOptions& options, const CsvBlocks& blocks = {},
                         std::optional<int64_t> whole_column = std::nullopt);
CsvTable read_csv_table_in_blocks(const std::string& path, char delimiter,
                                  const CsvBlocks& blocks = {.bytes = size_t{8} << 20});

// The first line that is not empty, without its end; empty if there is none. Throws as read_csv.
std::string first_csv_line(const std::string& path,
                           const CsvBlocks& blocks = {
                               .bytes = size_t{64} << 10, .longest_line = kLongestLine, .ahead = 0});

}  // namespace mox::data::internal
