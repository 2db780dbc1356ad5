#include "moxing/formats/internal/csv/csv_blocks.h"

#include <algorithm>
#include <span>

#include "moxing/file/file.h"
#include "moxing/file/streams/forward_object.h"
#include "moxing/formats/internal/csv/csv_numbers.h"
#include "moxing/formats/internal/csv/csv_text.h"

namespace mox::data::internal {
namespace {

class FileText : public ByteStream {
 public:
  explicit FileText(const std::string& path) : source_(path), stream_(source_) {}
  uint64_t left() const override { return stream_.left(); }
  void read(std::span<std::byte> out) override { stream_.read(out); }

 private:
  FileSource source_;
  SourceStream stream_;
};

class ObjectText : public ByteStream {
 public:
  ObjectText(const std::string& url, int64_t ahead) : object_(url, ahead) {}
  uint64_t left() const override { return object_.left(); }
  void read(std::span<std::byte> out) override { object_.read(out); }

 private:
  file::ForwardObject object_;
};

}  // namespace

std::unique_ptr<ByteStream> open_csv(const std::string& path, const CsvBlocks& blocks) {
  if (file::is_remote(path)) return std::make_unique<ObjectText>(path, blocks.ahead);
  return std::make_unique<FileText>(path);
}

void read_in_blocks(ByteStream& text, size_t block_bytes,
                    FunctionRef<std::optional<size_t>(std::string_view text, bool is_last)> take) {
  std::string block;
  size_t held = 0;  // of the block's bytes, those that are read and not done with
  for (;;) {
    const size_t more = std::min<uint64_t>(std::max(block_bytes, held), text.left());
    block.resize(held + more);
    text.read(std::as_writable_bytes(std::span(block).subspan(held)));
    const bool is_last = text.left() == 0;
    const std::optional<size_t> taken = take(block, is_last);
    if (!taken || is_last) return;
    block.erase(0, *taken);
    held = block.size();
  }
}

Array read_csv_in_blocks(const std::string& path, const CsvOptions& options, const CsvBlocks& blocks,
                         std::optional<int64_t> whole_column) {
  CsvNumbers numbers(options, path, blocks.longest_line, whole_column);
  read_in_blocks(*open_csv(path, blocks), blocks.bytes,
                 [&](std::string_view text, bool is_last) { return numbers.take(text, is_last); });
  return numbers.finish();
}

std::string first_csv_line(const std::string& path, const CsvBlocks& blocks) {
  std::string found;
  bool is_first = true;
  int64_t lines = 0;
  const auto take = [&](std::string_view text, bool is_last) -> std::optional<size_t> {
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
  };
  read_in_blocks(*open_csv(path, blocks), blocks.bytes, take);
  return found;
}

}  // namespace mox::data::internal
