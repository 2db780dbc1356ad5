// Any text is a table of numbers, or a DataError.
#include <cstdint>
#include <string_view>

#include "moxing/formats/csv.h"
#include "runtime/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const mox::data::CsvOptions& options : {mox::data::CsvOptions{}, {.delimiter = ';', .header = true}}) {
    try {
      const mox::Array table = mox::data::parse_csv(text, options, "input");
      MOX_ASSERT(static_cast<size_t>(table.elements()) <= size, "each number takes a character");
    } catch (const mox::DataError&) {
    }
  }
  return 0;
}
