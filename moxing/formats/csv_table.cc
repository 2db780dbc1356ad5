#include "moxing/formats/csv_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "moxing/file/file.h"
#include "moxing/formats/internal/csv/csv_blocks.h"
#include "moxing/formats/internal/csv/csv_rows.h"
#include "moxing/formats/internal/csv/csv_slices.h"
#include "moxing/formats/internal/csv/csv_text.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/nearest_name.h"

namespace mox::data {
namespace {

// A first line with a number in it is hardly one of names.
std::string header_advice(const TextRange& columns) {
  const auto is_number = [](std::string_view cell) {
    double number = 0;
    const char* end = cell.data() + cell.size();
    const auto parsed = std::from_chars(cell.data(), end, number);
    return parsed.ec == std::errc() && parsed.ptr == end;
  };
  if (std::none_of(columns.begin(), columns.end(), is_number)) return "";
  return "; its first line must name the columns, and seems to be the first row: put a line of names before "
         "it";
}

void require_delimiter(char delimiter) {
  if (delimiter == '"' || delimiter == '\n' || delimiter == '\r' || delimiter == ' ')
    throw InvalidArgument("csv: the delimiter must not be a quote, a space or the end of a line");
}

}  // namespace

struct CsvTable::Content : internal::CsvRows {
  std::string path;
  uint32_t checksum = 0;
  char delimiter = ',';
};

int64_t CsvTable::rows() const { return std::ssize(content_->lines); }
TextRange CsvTable::columns() const& { return {content_->texts, 0, content_->columns}; }
const std::string& CsvTable::path() const { return content_->path; }
uint32_t CsvTable::checksum() const { return content_->checksum; }

std::string_view CsvTable::cell(int64_t row, size_t column) const& {
  return content_->texts[(row + 1) * content_->columns + column];
}

int64_t CsvTable::line(int64_t row) const { return content_->lines[row]; }

size_t CsvTable::column(std::string_view name) const {
  const TextRange names = columns();
  const auto& sorted = content_->sorted_columns;
  const auto found =
      std::ranges::lower_bound(sorted, name, {}, [&](uint32_t column) { return names[column]; });
  if (found != sorted.end() && names[*found] == name) return *found;
  const std::vector<std::string> known = names.strings();
  const std::string nearest = mox::internal::nearest_name(name, known);
  throw NotFound(fmt::format(
      "'{}' has no column '{}'{}; it has {}{}", path(), name,
      nearest.empty() ? "" : fmt::format(": is '{}' meant?", nearest), mox::internal::first_names(known),
      (names.size() == 1 ? internal::delimiter_advice(names[0], content_->delimiter) : "") +
          header_advice(names)));
}

bool CsvTable::has_column(std::string_view name) const {
  return std::ranges::binary_search(content_->sorted_columns, name, {},
                                    [&](uint32_t column) { return columns()[column]; });
}

std::string CsvTable::place(int64_t row, size_t column) const {
  return fmt::format("'{}', line {}, column '{}'", path(), line(row), columns()[column]);
}

CsvTable parse_csv_table(std::string text, char delimiter, const std::string& name) {
  require_delimiter(delimiter);
  const uint32_t checksum = internal::crc32_of_slices(text, 0);
  internal::require_utf8(internal::without_mark(text, name), name);
  return CsvTable(std::make_shared<CsvTable::Content>(
      CsvTable::Content{internal::csv_rows(std::move(text), delimiter, name), name, checksum, delimiter}));
}

CsvTable internal::read_csv_table_in_blocks(const std::string& path, char delimiter,
                                            const CsvBlocks& blocks) {
  const std::unique_ptr<ByteStream> text = open_csv(path, blocks);
  require_delimiter(delimiter);
  uint32_t checksum = 0;
  CsvRows rows = csv_rows(*text, blocks.bytes, delimiter, path, &checksum);
  return CsvTable(
      std::make_shared<CsvTable::Content>(CsvTable::Content{std::move(rows), path, checksum, delimiter}));
}

CsvTable read_csv_table(const std::string& path, char delimiter) {
  if (file::is_remote(path)) return internal::read_csv_table_in_blocks(path, delimiter);
  return parse_csv_table(read_file(path), delimiter, path);
}

std::vector<std::string> missing_words() { return {"NA", "N/A", "#N/A", "<NA>", "NaN", "null", "?"}; }

std::optional<double> parse_number(std::string_view text, char decimal) {
  std::string memory;
  const auto number = internal::with_decimal_point(text, decimal, &memory);
  if (!number) return std::nullopt;
  std::string_view cell = *number;
  if (cell.starts_with('+')) {
    cell.remove_prefix(1);
    if (cell.starts_with('-') || cell.starts_with('+')) return std::nullopt;
  }
  double value = 0;
  const auto [rest, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (cell.empty() || rest != cell.data() + cell.size() || error != std::errc() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

}  // namespace mox::data
