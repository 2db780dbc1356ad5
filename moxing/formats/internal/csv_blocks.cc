#include "moxing/formats/internal/csv_blocks.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "moxing/formats/internal/csv_numbers.h"
#include "moxing/formats/internal/csv_text.h"
#include "runtime/base/function_ref.h"
#include "runtime/base/input_file.h"

namespace mox::data::internal {
namespace {

// `take` gets what is not done with and the next block, and whether nothing follows; it says how many bytes
// it is done with, or nothing to end. It refuses what it keeps of a line that is too long.
void read_in_blocks(const std::string& path, const CsvBlocks& blocks,
                    FunctionRef<std::optional<size_t>(std::string_view text, bool is_last)> take) {
  const InputFile file(path);
  const uint64_t bytes = file.bytes();
  std::string block;
  size_t held = 0;  // of the block's bytes, those that are read and not done with
  for (uint64_t at = 0;;) {
    const size_t more = std::min<uint64_t>(std::max(blocks.bytes, held), bytes - at);
    block.resize(held + more);
    file.read_at(at, std::as_writable_bytes(std::span(block).subspan(held)));
    at += more;
    const std::optional<size_t> taken = take(block, at == bytes);
    if (!taken || at == bytes) return;
    block.erase(0, *taken);
    held = block.size();
  }
}

}  // namespace

Array read_csv_in_blocks(const std::string& path, const CsvOptions& options, const CsvBlocks& blocks) {
  CsvNumbers numbers(options, path, blocks.longest_line);
  read_in_blocks(path, blocks,
                 [&](std::string_view text, bool is_last) { return numbers.take(text, is_last); });
  return numbers.finish();
}

std::string first_csv_line(const std::string& path, const CsvBlocks& blocks) {
  std::string found;
  bool is_first = true;
  int64_t lines = 0;
  read_in_blocks(path, blocks, [&](std::string_view text, bool is_last) -> std::optional<size_t> {
    constexpr size_t kLongestMark = 4;
    if (text.size() < kLongestMark && !is_last) return 0;
    std::string_view content = is_first ? without_mark(text, path) : text;
    is_first = false;
    while (!content.empty()) {
      std::string_view rest = content;
      const std::string_view line = take_line(&rest);
      if (line.size() > blocks.longest_line) refuse_long_line(path, lines + 1, blocks.longest_line);
      if (rest.empty() && !is_last) break;  // the line may go on
      content = rest;
      ++lines;
      if (without_spaces(line).empty()) continue;
      found = line;
      return std::nullopt;
    }
    return text.size() - content.size();
  });
  return found;
}

}  // namespace mox::data::internal
