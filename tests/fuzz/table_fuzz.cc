// Any text is a table of text, or a DataError; what is learnt of it comes back from its JSON; and any text is
// a schema, or a DataError.
#include <algorithm>
#include <cstdint>
#include <optional>
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

std::optional<mox::TableSchema> fitted(const mox::data::CsvTable& table, const mox::TableOptions& options) {
  try {
    return mox::TableSchema::fit(table, options);
  } catch (const mox::DataError&) {
    return std::nullopt;
  }
}

// What a run writes into its checkpoints must be readable there.
void require_kept(const mox::TableSchema& schema) {
  std::string json;
  try {
    json = schema.to_json();
  } catch (const mox::DataError&) {
    return;  // names that are not UTF-8
  }
  try {
    MOX_ASSERT(mox::TableSchema::from_json(json, "input") == schema, "the schema comes back");
  } catch (const mox::DataError& error) {
    MOX_ASSERT(false, error.what());
  }
}

void read_as_table(const std::string& text, char delimiter) {
  const mox::data::CsvTable table = mox::data::parse_csv_table(text, delimiter, "input");
  MOX_ASSERT(static_cast<size_t>(table.rows()) * table.columns().size() <= text.size() + 1,
             "a cell takes a character");
  for (const mox::TableTask task : {mox::TableTask::kRegression, mox::TableTask::kClassification}) {
    const mox::TableOptions options{.target = table.columns()[0], .task = task};
    const std::optional<mox::TableSchema> schema = fitted(table, options);
    if (!schema) continue;
    require_kept(*schema);
    const mox::Array features = mox::table_features(*schema, table);
    MOX_ASSERT(features.shape()[1] == schema->features(), "one width");
    mox::TableOptions large = options;
    large.largest_vocabulary = 1 << 20;
    if (const auto of_many = fitted(table, large)) require_kept(*of_many);
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
