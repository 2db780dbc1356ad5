#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "moxing/json/bounded_json.h"
#include "moxing/json/parse_json.h"
#include "moxing/json/whole_number.h"
#include "moxing/tabular/internal/schema_content.h"
#include "moxing/tabular/table_schema.h"
#include "runtime/base/error.h"

namespace mox {
namespace {

// A category has a line of its own, of nine characters at least, and counts as a value of 113 bytes,
// which is at most so many times the text.
constexpr size_t kMostTimes = 14;

constexpr int kSchemaVersion = 1;

nlohmann::ordered_json json_of(const TableMoments& moments) {
  return {{"mean", moments.mean}, {"deviation", moments.deviation}};
}

TableMoments moments_from(const nlohmann::json& json) {
  const TableMoments moments{json.at("mean").get<double>(), json.at("deviation").get<double>()};
  if (!std::isfinite(moments.mean) || !std::isfinite(moments.deviation) || moments.deviation <= 0)
    throw DataError(fmt::format("a mean and a deviation of {}", json.dump()));
  return moments;
}

// Adds the words to `texts`; how many there are.
uint32_t add_sorted_words(const nlohmann::json& json, data::TextList* texts) {
  if (!json.is_array()) throw DataError("categories that are no list");
  std::string_view before;
  for (size_t i = 0; i < json.size(); ++i) {
    const std::string& word = json.at(i).get_ref<const std::string&>();
    if (i > 0 && word <= before) throw DataError("categories that are not sorted, or there twice");
    texts->add(word);
    before = word;
  }
  return static_cast<uint32_t>(json.size());  // of a text that is bounded
}

template <typename Kind>
Kind one_of(const nlohmann::json& json, const char* first, Kind first_kind, const char* second,
            Kind second_kind) {
  const auto text = json.get<std::string>();
  if (text != first && text != second)
    throw DataError(fmt::format("'{}' instead of {} or {}", text, first, second));
  return text == first ? first_kind : second_kind;
}

std::string add_column(const nlohmann::json& json, internal::TableSchemaContent* schema) {
  auto name = json.at("name").get<std::string>();
  const auto kind =
      one_of(json.at("kind"), "number", TableColumnKind::kNumber, "category", TableColumnKind::kCategory);
  auto& column = schema->add_column(name, kind, json.at("was_missing").get<bool>());
  if (kind == TableColumnKind::kNumber) {
    column.moments = moments_from(json);
    if (json.value("is_constant", false)) schema->add_only_value(column);
  } else {
    column.words = add_sorted_words(json.at("vocabulary"), &schema->texts);
  }
  if (column.is_category && column.words == 0 && !column.was_missing)
    throw DataError(fmt::format("a column '{}' without categories", name));
  return name;
}

}  // namespace

std::string TableSchema::to_json() const {
  nlohmann::ordered_json json = {{"version", kSchemaVersion},
                                 {"task", task() == TableTask::kRegression ? "regression" : "classification"},
                                 {"target", target()},
                                 {"id", id()},
                                 {"training_part", training_part()},
                                 {"decimal", std::string(1, decimal())},
                                 {"missing_words", missing_words()}};
  if (task() == TableTask::kRegression)
    json["target_moments"] = json_of(target_moments());
  else
    json["classes"] = class_names();
  auto& entries = json["columns"] = nlohmann::ordered_json::array();
  for (const TableColumn& column : columns()) {
    const bool is_number = column.kind == TableColumnKind::kNumber;
    nlohmann::ordered_json entry = {{"name", column.name},
                                    {"kind", is_number ? "number" : "category"},
                                    {"was_missing", column.was_missing}};
    if (is_number)
      entry.update(json_of(column.moments));
    else
      entry["vocabulary"] = column.vocabulary.strings();
    if (is_number && !column.vocabulary.empty()) entry["is_constant"] = true;
    entries.push_back(std::move(entry));
  }
  // Names and categories are bytes of a file, perhaps not UTF-8.
  try {
    return json.dump(2);
  } catch (const nlohmann::json::exception& error) {
    throw DataError(
        fmt::format("the names of a table's columns and its categories must be UTF-8: {}", error.what()));
  }
}

TableSchema TableSchema::from_json(std::string_view text, const std::string& origin) {
  auto schema = std::make_shared<internal::TableSchemaContent>();
  try {
    const auto json = parse_json(text, origin, kMostTimes);
    if (const int version = whole_number<int>(json.at("version")); version != kSchemaVersion)
      throw DataError(fmt::format("version {}, which a newer moxing has written", version));
    schema->task = one_of(json.at("task"), "regression", TableTask::kRegression, "classification",
                          TableTask::kClassification);
    schema->target = json.at("target").get<std::string>();
    schema->id = json.at("id").get<std::string>();
    schema->training_part = json.at("training_part").get<std::string>();
    schema->decimal = one_of(json.at("decimal"), ".", '.', ",", ',');
    schema->set_missing_words(json.at("missing_words").get<std::vector<std::string>>());
    if (schema->task == TableTask::kRegression) {
      schema->target_moments = moments_from(json.at("target_moments"));
    } else {
      schema->classes = json.at("classes").get<std::vector<std::string>>();
      const std::set<std::string_view> different(schema->classes.begin(), schema->classes.end());
      if (different.size() < 2 || different.size() != schema->classes.size())
        throw DataError(fmt::format("{} classes, {} different", schema->classes.size(), different.size()));
    }
    std::set<std::string> names = {schema->target};
    for (const auto& entry : json.at("columns")) {
      const std::string name = add_column(entry, schema.get());
      if (!names.insert(name).second) throw DataError(fmt::format("two columns called '{}'", name));
    }
    if (schema->columns.empty()) throw DataError("no columns");
  } catch (const std::exception& error) {
    throw DataError(fmt::format("'{}' holds no schema of a table: {}", origin, error.what()));
  }
  return TableSchema(std::move(schema));
}

}  // namespace mox
