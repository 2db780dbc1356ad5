// Any text is a table of text, or a DataError; what is learnt of it comes back from its JSON; and any text is
// a schema, or a DataError.
#include <algorithm>
#include <cstdint>
#include <string>

#include "moxing/tabular/table_dataset.h"
#include "moxing/tabular/table_schema.h"
#include "runtime/base/error.h"
#include "tests/fuzz/heap_peak.h"

namespace mox::fuzz {

// The cells of a table and the categories that they become are texts of their own, of a few bytes in the
// file. Of its features each cell may be a thousand, for so many categories a column may have.
size_t allowed_heap(const unsigned char* data, size_t size) {
  const auto cells =
      static_cast<size_t>(std::count_if(data, data + size, [](char c) { return c < '-'; })) + 1;
  return 48 * size + (1 << 20) + sizeof(float) * cells * std::min<size_t>(cells, 1000);
}

}  // namespace mox::fuzz

namespace {

void read_as_table(const std::string& text, char delimiter) {
  const mox::data::CsvTable table = mox::data::parse_csv_table(text, delimiter, "input");
  MOX_ASSERT(static_cast<size_t>(table.rows()) * table.columns().size() <= text.size() + 1,
             "a cell takes a character");
  for (const mox::TableTask task : {mox::TableTask::kRegression, mox::TableTask::kClassification}) {
    try {
      const auto schema = mox::TableSchema::fit(table, {.target = table.columns()[0], .task = task});
      MOX_ASSERT(mox::TableSchema::from_json(schema.to_json(), "input") == schema, "the schema comes back");
      const mox::Array features = mox::table_features(schema, table);
      MOX_ASSERT(features.shape()[1] == schema.features(), "one width");
    } catch (const mox::DataError&) {
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const char delimiter : {',', '\t'}) {
    try {
      read_as_table(text, delimiter);
    } catch (const mox::DataError&) {
    }
  }
  try {
    mox::TableSchema::from_json(text, "input");
  } catch (const mox::DataError&) {
  }
  return 0;
}
