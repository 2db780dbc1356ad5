// CSV files of any text: named columns of cells, as they stand in the file. What the cells mean is said
// elsewhere (moxing/tabular/table_schema.h); csv.h reads numbers alone.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "moxing/formats/text_list.h"

namespace mox::data {

class CsvTable;
namespace internal {
struct CsvBlocks;
CsvTable read_csv_table_in_blocks(const std::string& path, char delimiter, const CsvBlocks& blocks);
}  // namespace internal

// The cells of a file, in memory: their bytes and four more for each. A handle to what does not change:
// copying is cheap, threads may share it.
class CsvTable {
 public:
  int64_t rows() const;
  TextRange columns() const&;  // their names; valid while a copy of the table lives
  TextRange columns() const&& = delete;
  const std::string& path() const;
  uint32_t checksum() const;  // CRC-32 of the text

  // The place of the column of that name. Throws NotFound, naming the nearest and those there are, and
  // another delimiter that the file seems to have.
  size_t column(std::string_view name) const;
  bool has_column(std::string_view name) const;

  // Without the quotes around it, and without spaces around it if it had none. Valid while a copy of the
  // table lives.
  std::string_view cell(int64_t row, size_t column) const&;
  std::string_view cell(int64_t row, size_t column) const&& = delete;
  // The line of the file, counted from 1, in which a row begins.
  int64_t line(int64_t row) const;
  // "'data.csv', line 7, column 'age'"
  std::string place(int64_t row, size_t column) const;

 private:
  friend CsvTable parse_csv_table(std::string content, char delimiter, const std::string& name);
  friend CsvTable internal::read_csv_table_in_blocks(const std::string& path, char delimiter,
                                                     const internal::CsvBlocks& blocks);

  struct Content;
  explicit CsvTable(std::shared_ptr<const Content> content) : content_(std::move(content)) {}

  std::shared_ptr<const Content> content_;
};

// The first line names the columns. A cell in double quotes may hold delimiters, line breaks and doubled
// quotes (RFC 4180); lines end with \n, \r\n or \r; empty ones and a byte order mark are passed over.
// Throws NotFound or IoError for the file, DataError (path, line, how to go on) for its content: no column
// names, one that is empty or there twice, a line with more or fewer cells than there are columns, a quote
// that does not end, no UTF-8 (UTF-16 and archives are named). All cores parse, with the same result and the
// same errors as one. Of an object of a store (s3://BUCKET/KEY) the next ranges are on their way meanwhile,
// and in memory are the cells and some blocks of the text.
CsvTable read_csv_table(const std::string& path, char delimiter = ',');

// The same of text in memory; `name` stands for the path in messages.
CsvTable parse_csv_table(std::string content, char delimiter, const std::string& name);

// NA, N/A, #N/A, <NA>, NaN, null and ?: what stands for a missing value where nothing else is said, besides
// an empty cell; in any case of letters.
std::vector<std::string> missing_words();

// The number that a cell spells, as 1, +1.5, -2.5 or 3e-4; nothing for anything else, nan and inf, and what
// double cannot hold. `decimal` is '.' or ','.
std::optional<double> parse_number(std::string_view cell, char decimal = '.');

}  // namespace mox::data
