// CSV files of numbers: one sample a line, as many numbers in each.
#pragma once

#include <string>
#include <string_view>

#include "runtime/tensor/array.h"

namespace mox::data {

struct CsvOptions {
  char delimiter = ',';
  bool header = false;  // the first line names the columns and is passed over
};

// float32 [lines, columns]. Numbers are decimal, as 1, -2.5 or 3e-4, with spaces around them; nothing is quoted; nan,
// inf and what float32 cannot hold are refused. Lines end with \n or \r\n; empty ones are passed over. Throws NotFound or
// IoError for the file, DataError (path, line, column) for its content.
Array read_csv(const std::string& path, const CsvOptions& options = {});

// The same from text in memory; `name` stands for the path in messages.
Array parse_csv(std::string_view content, const CsvOptions& options, const std::string& name);

}  // namespace mox::data
