#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "moxing/json/bounded_json.h"
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

std::vector<std::string> sorted_words(const nlohmann::json& json, const char* what) {
  auto words = json.get<std::vector<std::string>>();
  if (!std::is_sorted(words.begin(), words.end()) ||
      std::adjacent_find(words.begin(), words.end()) != words.end())
    throw DataError(fmt::format("{} that are not sorted, or there twice", what));
  return words;
}

template <typename Kind>
Kind one_of(const nlohmann::json& json, const char* first, Kind first_kind, const char* second,
            Kind second_kind) {
  const auto text = json.get<std::string>();
  if (text != first && text != second)
    throw DataError(fmt::format("'{}' instead of {} or {}", text, first, second));
  return text == first ? first_kind : second_kind;
}

TableColumn column_from(const nlohmann::json& json) {
  TableColumn column{.name = json.at("name").get<std::string>(),
                     .kind = one_of(json.at("kind"), "number", TableColumnKind::kNumber, "category",
                                    TableColumnKind::kCategory),
                     .was_missing = json.at("was_missing").get<bool>()};
  if (column.kind == TableColumnKind::kNumber)
    column.moments = moments_from(json);
  else
    column.vocabulary = sorted_words(json.at("vocabulary"), "categories");
  if (column.features() == 0) throw DataError(fmt::format("a column '{}' without categories", column.name));
  return column;
}

}  // namespace

std::string TableSchema::to_json() const {
  nlohmann::ordered_json json = {{"version", kSchemaVersion},
                                 {"task", task_ == TableTask::kRegression ? "regression" : "classification"},
                                 {"target", target_},
                                 {"id", id_},
                                 {"training_part", training_part_},
                                 {"decimal", std::string(1, decimal_)},
                                 {"missing_words", missing_words_}};
  if (task_ == TableTask::kRegression)
    json["target_moments"] = json_of(target_moments_);
  else
    json["classes"] = classes_;
  auto& columns = json["columns"] = nlohmann::ordered_json::array();
  for (const TableColumn& column : columns_) {
    const bool is_number = column.kind == TableColumnKind::kNumber;
    nlohmann::ordered_json entry = {{"name", column.name},
                                    {"kind", is_number ? "number" : "category"},
                                    {"was_missing", column.was_missing}};
    if (is_number)
      entry.update(json_of(column.moments));
    else
      entry["vocabulary"] = column.vocabulary;
    columns.push_back(std::move(entry));
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
  TableSchema schema;
  try {
    require_bounded_json(text, origin, kMostTimes);
    const auto json = nlohmann::json::parse(text);
    if (const int version = json.at("version").get<int>(); version != kSchemaVersion)
      throw DataError(fmt::format("version {}, which a newer moxing has written", version));
    schema.task_ = one_of(json.at("task"), "regression", TableTask::kRegression, "classification",
                          TableTask::kClassification);
    schema.target_ = json.at("target").get<std::string>();
    schema.id_ = json.at("id").get<std::string>();
    schema.training_part_ = json.at("training_part").get<std::string>();
    schema.decimal_ = one_of(json.at("decimal"), ".", '.', ",", ',');
    schema.missing_words_ = json.at("missing_words").get<std::vector<std::string>>();
    std::sort(schema.missing_words_.begin(), schema.missing_words_.end());
    if (schema.task_ == TableTask::kRegression) {
      schema.target_moments_ = moments_from(json.at("target_moments"));
    } else {
      schema.classes_ = json.at("classes").get<std::vector<std::string>>();
      const std::set<std::string_view> different(schema.classes_.begin(), schema.classes_.end());
      if (different.size() < 2 || different.size() != schema.classes_.size())
        throw DataError(fmt::format("{} classes, {} different", schema.classes_.size(), different.size()));
    }
    std::set<std::string> names = {schema.target_};
    for (const auto& entry : json.at("columns")) {
      schema.columns_.push_back(column_from(entry));
      if (!names.insert(schema.columns_.back().name).second)
        throw DataError(fmt::format("two columns called '{}'", schema.columns_.back().name));
    }
    if (schema.columns_.empty()) throw DataError("no columns");
  } catch (const std::exception& error) {
    throw DataError(fmt::format("'{}' holds no schema of a table: {}", origin, error.what()));
  }
  return schema;
}

}  // namespace mox
