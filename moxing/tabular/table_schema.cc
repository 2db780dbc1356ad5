#include "moxing/tabular/table_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "moxing/job/distributed.h"
#include "moxing/tabular/internal/cell_words.h"
#include "moxing/tabular/internal/column_moments.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/nearest_name.h"

namespace mox {
namespace {

using data::CsvTable;

// What the training part has in one column.
struct ColumnContent {
  int64_t there = 0, numbers = 0, missing = 0;
  int64_t disguised = 0;                               // numbers as people write them
  std::optional<int64_t> first_text, first_disguised;  // rows
  std::map<std::string_view, int64_t> categories;      // and how many rows have them
  std::vector<double> values;
};

ColumnContent read_column(const CsvTable& table, size_t column, const TableSchema& schema,
                          std::span<const int64_t> rows) {
  ColumnContent content;
  for (const int64_t row : rows) {
    const std::string_view cell = table.cell(row, column);
    if (schema.is_missing(cell)) {
      ++content.missing;
      continue;
    }
    ++content.there;
    ++content.categories[cell];
    if (const auto value = data::parse_number(cell, schema.decimal())) {
      ++content.numbers;
      content.values.push_back(*value);
    } else {
      if (!content.first_text) content.first_text = row;
      if (internal::disguised_number(cell, schema.decimal())) {
        ++content.disguised;
        if (!content.first_disguised) content.first_disguised = row;
      }
    }
  }
  return content;
}

[[noreturn]] void refuse_disguised(const CsvTable& table, size_t column, const ColumnContent& content,
                                   char decimal, const char* advice) {
  const std::string_view cell = table.cell(*content.first_disguised, column);
  const auto number = internal::disguised_number(cell, decimal);
  const bool is_mark = number->why.starts_with("the decimal mark");
  throw DataError(fmt::format(
      "{}: '{}' is a number with {}, as {} of the column's {} values are: {}{}",
      table.place(*content.first_disguised, column), cell, number->why, content.disguised, content.there,
      is_mark ? "say so (decimal)" : fmt::format("write plain numbers, {}", number->plain), advice));
}

[[noreturn]] void refuse_text(const CsvTable& table, size_t column, const ColumnContent& content,
                              const std::string& advice) {
  throw DataError(fmt::format("{}: '{}' is no number{}", table.place(*content.first_text, column),
                              table.cell(*content.first_text, column), advice));
}

TableColumnKind kind_of(const CsvTable& table, size_t column, const ColumnContent& content,
                        const TableOptions& options) {
  const std::string& name = table.columns()[column];
  const auto is_in = [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (is_in(options.categories)) return TableColumnKind::kCategory;
  const bool said = is_in(options.numbers);
  if (content.numbers == content.there) return TableColumnKind::kNumber;
  if (content.disguised > 0 && (content.numbers + content.disguised) * 2 > content.there)
    refuse_disguised(table, column, content, options.decimal,
                     ", or say that they are categories (categories)");
  if (!said && content.numbers * 2 <= content.there) return TableColumnKind::kCategory;
  refuse_text(
      table, column, content,
      fmt::format(
          ": {} of the column's {} values are numbers. Mend the others, or say what they are: missing "
          "values (missing_words), or a column of categories (categories)",
          content.numbers, content.there));
}

std::vector<std::string> vocabulary_of(const ColumnContent& content, const std::string& column,
                                       const TableOptions& options) {
  if (std::ssize(content.categories) > options.largest_vocabulary)
    throw DataError(fmt::format(
        "column '{}' has {} different values, more than {}: if it names the rows say so (id); if it "
        "tells nothing leave it out (ignored); else raise largest_vocabulary",
        column, content.categories.size(), options.largest_vocabulary));
  std::vector<std::string> vocabulary;
  for (const auto& [word, count] : content.categories) vocabulary.emplace_back(word);
  return vocabulary;
}

// Each column has one part to play.
void check_names(const CsvTable& table, const TableOptions& options) {
  std::map<std::string, std::string> parts;
  const auto add = [&](const std::string& name, const char* part) {
    table.column(name);
    const auto [before, is_new] = parts.emplace(name, part);
    if (!is_new)
      throw InvalidArgument(
          fmt::format("column '{}' cannot be {} and {} at once", name, before->second, part));
  };
  if (options.target.empty())
    throw InvalidArgument("a table needs a target: the column that is to be learnt");
  add(options.target, "the target");
  if (!options.id.empty()) add(options.id, "the name of the rows (id)");
  for (const std::string& name : options.numbers) add(name, "a number");
  for (const std::string& name : options.categories) add(name, "a category");
  for (const std::string& name : options.ignored) add(name, "ignored");
  if (options.largest_vocabulary < 1)
    throw InvalidArgument(
        fmt::format("largest_vocabulary must be at least 1, it is {}", options.largest_vocabulary));
  if (options.decimal != '.' && options.decimal != ',')
    throw InvalidArgument(fmt::format("the decimal mark must be '.' or ',', it is '{}'", options.decimal));
}

void warn_of_similar(const CsvTable& table, const std::string& column, const ColumnContent& content,
                     char decimal, const char* what) {
  const auto similar = internal::similar_words(content.categories, decimal);
  if (!similar || rank() != 0) return;
  log_warning(fmt::format(
      "'{}', column '{}': '{}' and '{}' {}{}, and are different {} to the model; write them alike if "
      "they mean the same",
      table.path(), column, similar->first, similar->second, similar->why,
      similar->more > 0 ? fmt::format(" (as {} more do)", similar->more) : "", what));
}

// The moments of a column of numbers. A warning where a few of them would hide the others.
TableMoments moments_in(const CsvTable& table, const std::string& column, const std::vector<double>& values) {
  const TableMoments moments = internal::moments_of(values);
  if (!std::isfinite(moments.mean) || !std::isfinite(moments.deviation))
    throw DataError(fmt::format(
        "'{}', column '{}' has numbers as large as {:g}, whose squares are beyond what a float64 "
        "holds: scale the column, or say which words mean that there is no value (missing_words)",
        table.path(), column, std::ranges::max(values, {}, [](double value) { return std::abs(value); })));
  if (const auto far = internal::far_numbers(values, moments); far && rank() == 0)
    log_warning(fmt::format(
        "'{}', column '{}': {}. Numbers that mean 'no value' belong among missing_words; a slip is mended in "
        "the file; what is really so far is better given as a logarithm",
        table.path(), column, *far));
  return moments;
}

// Class 2 comes before class 10 where all are numbers, and 2.0 is class 2.
std::vector<std::string> classes_of(const CsvTable& table, const std::string& target,
                                    const ColumnContent& content, char decimal) {
  if (content.numbers != content.there) {
    warn_of_similar(table, target, content, decimal, "classes");
    std::vector<std::string> classes;
    for (const auto& [name, count] : content.categories) classes.emplace_back(name);
    return classes;
  }
  std::vector<std::string> other;
  std::vector<std::string> classes = internal::number_words(content.categories, decimal, &other);
  if (!other.empty())
    log_info(fmt::format("'{}', column '{}': equal numbers are one class ({} are others of the {} classes)",
                         table.path(), target, internal::first_names(other), classes.size()));
  return classes;
}

}  // namespace

int64_t TableColumn::features() const {
  return (kind == TableColumnKind::kNumber ? 1 : static_cast<int64_t>(vocabulary.size())) +
         (was_missing ? 1 : 0);
}

int64_t TableSchema::features() const {
  int64_t count = 0;
  for (const TableColumn& column : columns_) count += column.features();
  return count;
}

std::vector<std::string> TableSchema::feature_names() const {
  std::vector<std::string> names;
  for (const TableColumn& column : columns_) {
    if (column.kind == TableColumnKind::kNumber) names.push_back(column.name);
    for (const std::string& word : column.vocabulary) names.push_back(column.name + "=" + word);
    if (column.was_missing) names.push_back(column.name + " missing");
  }
  return names;
}

bool TableSchema::is_missing(std::string_view cell) const {
  if (cell.empty()) return true;
  size_t longest = 0;
  for (const std::string& word : missing_words_) longest = std::max(longest, word.size());
  return cell.size() <= longest &&
         std::binary_search(missing_words_.begin(), missing_words_.end(), internal::lower_case(cell));
}

TableSchema TableSchema::fit(const CsvTable& table, const TableOptions& options,
                             std::span<const int64_t> rows) {
  check_names(table, options);
  if (rows.empty()) throw DataError(fmt::format("'{}' has no rows to learn from", table.path()));
  TableSchema schema;
  schema.task_ = options.task;
  schema.target_ = options.target;
  schema.id_ = options.id;
  schema.training_part_ = options.training_part;
  schema.decimal_ = options.decimal;
  schema.missing_words_ = {""};
  for (const std::string& word : options.missing_words)
    schema.missing_words_.push_back(internal::lower_case(word));
  std::sort(schema.missing_words_.begin(), schema.missing_words_.end());

  for (size_t c = 0; c < table.columns().size(); ++c) {
    const std::string& name = table.columns()[c];
    const bool ignored =
        std::find(options.ignored.begin(), options.ignored.end(), name) != options.ignored.end();
    if (ignored || name == options.id) continue;
    const ColumnContent content = read_column(table, c, schema, rows);
    if (name == options.target) {
      if (content.missing > 0) {
        const auto first = std::find_if(rows.begin(), rows.end(),
                                        [&](int64_t row) { return schema.is_missing(table.cell(row, c)); });
        throw DataError(fmt::format("{}: the target is missing, here and in {} of {} rows: leave these out",
                                    table.place(*first, c), content.missing, rows.size()));
      }
      if (options.task == TableTask::kClassification) {
        schema.classes_ = classes_of(table, name, content, options.decimal);
        if (schema.classes_.size() < 2)
          throw DataError(fmt::format("column '{}' has one class alone, '{}': there is nothing to learn",
                                      name, schema.classes_[0]));
        if (std::ssize(schema.classes_) > options.largest_vocabulary)
          throw DataError(
              fmt::format("the target '{}' has {} different values: a number to be learnt is a "
                          "regression; for so many classes raise largest_vocabulary",
                          name, schema.classes_.size()));
      } else {
        if (content.first_disguised)
          refuse_disguised(table, c, content, options.decimal, "; it is the target of a regression");
        if (content.first_text)
          refuse_text(table, c, content, ": the target of a regression; is it a classification?");
        schema.target_moments_ = moments_in(table, name, content.values);
      }
      continue;
    }
    if (content.there == 0)
      throw DataError(
          fmt::format("column '{}' of '{}' has no value in any row to learn from: leave it out (ignored)",
                      name, table.path()));
    TableColumn column{
        .name = name, .kind = kind_of(table, c, content, options), .was_missing = content.missing > 0};
    if (column.kind == TableColumnKind::kNumber)
      column.moments = moments_in(table, name, content.values);
    else
      column.vocabulary = vocabulary_of(content, name, options);
    if (column.kind == TableColumnKind::kCategory)
      warn_of_similar(table, name, content, options.decimal, "categories");
    schema.columns_.push_back(std::move(column));
  }
  if (schema.columns_.empty())
    throw DataError(fmt::format("'{}' has no column to learn from, beside the target", table.path()));
  return schema;
}

TableSchema TableSchema::fit(const CsvTable& table, const TableOptions& options) {
  std::vector<int64_t> rows(table.rows());
  std::iota(rows.begin(), rows.end(), int64_t{0});
  return fit(table, options, rows);
}

}  // namespace mox
