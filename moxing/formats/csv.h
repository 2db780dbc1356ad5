// CSV files of numbers: one sample a line, as many numbers in each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/source_location.h"
#include "runtime/data/dataset.h"
#include "runtime/tensor/array.h"

namespace mox::data {

struct CsvOptions {
  char delimiter = ',';
  bool header = false;  // the first line names the columns and is passed over

  // ',' for numbers as 1,5 (the delimiter is then ';' or a tab).
  char decimal = '.';

  // What stands for a cell that is empty or one of missing_words (csv_table.h). Without it they are refused;
  // a label or target is in any case.
  std::optional<float> missing = std::nullopt;

  // What the options of the program that stand for these fields begin with, for messages: "data.csv_" for
  // data.csv_header and so on. Empty: messages name the fields.
  std::string option_prefix = {};
};

// float32 [lines, columns]. Numbers are decimal, as 1, +1.5, -2.5 or 3e-4, with spaces around them, and may
// stand in double quotes; what is too small for float32 is the nearest number that it holds, 0 at last. nan,
// inf and what is too large are refused. A byte order mark is passed over. Lines end with \n, \r\n or \r;
// empty ones are passed over, and more than 256 MiB are no line. A header of numbers alone that are not those
// of the columns gets a warning: it is a sample rather. Reading does not depend on the locale.
// A file of this machine or an object of a store (s3://BUCKET/KEY) is parsed in blocks and never in memory as
// a whole; of an object the next ranges are on their way meanwhile.
// Throws NotFound or IoError for the file, DataError (path, line, column, and how to go on) for its content,
// InvalidArgument for options that exclude each other.
Array read_csv(const std::string& path, const CsvOptions& options = {});

// The same from text in memory; `name` stands for the path in messages.
Array parse_csv(std::string_view content, const CsvOptions& options, const std::string& name);

// The column called `name` in the file's first line (quotes and spaces around it left out), counted from 0.
// Throws NotFound with the names that there are, DataError for a name that is there twice.
int64_t csv_column(const std::string& path, std::string_view name, const CsvOptions& options = {});

// Samples from a file, a line each: elements {numbers}, float32[columns]. With `label_column` (from 0) the
// number there, which must be whole, is the label: elements {numbers, label}, float32[columns - 1] and
// int32[]. Throws as read_csv, DataError (path, sample) for a label that is no whole number below 2^24 in
// size, or a column that is not there.
Dataset csv(const std::string& path, const CsvOptions& options = {},
            std::optional<int64_t> label_column = std::nullopt,
            SourceLocation where = SourceLocation::current());

// For regression: elements {numbers, target}, float32[columns - 1] and float32[].
Dataset csv_regression(const std::string& path, const CsvOptions& options, int64_t target_column,
                       SourceLocation where = SourceLocation::current());

}  // namespace mox::data
