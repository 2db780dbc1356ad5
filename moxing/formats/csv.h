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
};

// float32 [lines, columns]. Numbers are decimal, as 1, -2.5 or 3e-4, with spaces around them; nothing is
// quoted; nan, inf and what float32 cannot hold are refused. Lines end with \n or \r\n; empty ones are passed
// over. Throws NotFound or IoError for the file, DataError (path, line, column) for its content.
Array read_csv(const std::string& path, const CsvOptions& options = {});

// The same from text in memory; `name` stands for the path in messages.
Array parse_csv(std::string_view content, const CsvOptions& options, const std::string& name);

// Samples from a file, a line each: elements {numbers}, float32[columns]. With `label_column` (from 0) the
// number there, which must be whole, is the label: elements {numbers, label}, float32[columns - 1] and
// int32[]. Throws as read_csv, DataError (path, sample) for a label that is no whole number up to 2^24 in
// size, or a column that is not there.
Dataset csv(const std::string& path, const CsvOptions& options = {},
            std::optional<int64_t> label_column = std::nullopt,
            SourceLocation where = SourceLocation::current());

}  // namespace mox::data
