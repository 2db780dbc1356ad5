// Any text is a table of text, or a DataError; what is learnt of it comes back from its JSON; and any text is
// a schema, or a DataError.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "moxing/tabular/table_dataset.h"
#include "moxing/tabular/table_schema.h"
#include "runtime/base/error.h"
namespace {

std::optional<mox::TableSchema> fitted(const mox::data::CsvTable& table, const mox::TableOptions& options) {
  try {
    return mox::TableSchema::fit(table, options);
  } catch (const mox::DataError&) {
    return std::nullopt;
  }
}

// What a run writes into its checkpoints must be readable there. It has a line for each column and category,
// and is several times as large as a table of short ones: it is made of small tables, and read as an input.
void require_kept(const mox::TableSchema& schema, const mox::data::CsvTable& table, size_t bytes) {
  constexpr size_t kMost = 4 << 10;
  if (bytes > kMost) return;
  std::string json;
  try {
    json = schema.to_json();
  } catch (const mox::DataError&) {
    return;  // names that are not UTF-8
  }
  try {
    const mox::TableSchema read = mox::TableSchema::from_json(json, "input");
    MOX_ASSERT(read == schema, "the schema comes back");
    mox::table_dataset(read, table);
  } catch (const mox::DataError& error) {
    MOX_ASSERT(false, error.what());
  }
}

void read_samples(const mox::TableSchema& schema, const mox::data::CsvTable& table, size_t bytes) {
  mox::table_dataset(schema, table);
  const int64_t numbers = table.rows() * schema.features();
  if (numbers > static_cast<int64_t>(bytes)) return;  // a thousand for a cell, where so many categories are
  const mox::Array features = mox::table_features(schema, table);
  MOX_ASSERT(features.shape()[1] == schema.features(), "one width");
}

void read_as_table(std::string text, char delimiter) {
  const size_t bytes = text.size();
  const mox::data::CsvTable table = mox::data::parse_csv_table(std::move(text), delimiter, "input");
  MOX_ASSERT(static_cast<size_t>(table.rows()) * table.columns().size() <= bytes + 1,
             "a cell takes a character");
  for (const mox::TableTask task : {mox::TableTask::kRegression, mox::TableTask::kClassification}) {
    mox::TableOptions options{.target = std::string(table.columns()[0]), .task = task};
    for (const int64_t largest_vocabulary : {options.largest_vocabulary, int64_t{1} << 20}) {
      options.largest_vocabulary = largest_vocabulary;
      const std::optional<mox::TableSchema> schema = fitted(table, options);
      if (!schema) continue;
      require_kept(*schema, table, bytes);
      read_samples(*schema, table, bytes);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const char delimiter : {',', '\t'}) {
    try {
      read_as_table(std::string(text), delimiter);
    } catch (const mox::DataError&) {
    }
  }
  try {
    mox::TableSchema::from_json(text, "input");
  } catch (const mox::DataError&) {
  }
  return 0;
}
