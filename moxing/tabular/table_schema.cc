#include "moxing/tabular/table_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "moxing/job/distributed.h"
#include "moxing/tabular/internal/cell_words.h"
#include "moxing/tabular/internal/column_moments.h"
#include "moxing/tabular/internal/column_warnings.h"
#include "moxing/tabular/internal/letters.h"
#include "moxing/tabular/internal/schema_content.h"
#include "moxing/tabular/internal/word_counts.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/nearest_name.h"

namespace mox {
namespace {

using data::CsvTable;

using internal::TableSchemaContent;
using internal::WordCounts;

// The rows of a table that are learnt from: some, or all.
struct Rows {
  std::optional<std::span<const int64_t>> some;
  int64_t all = 0;

  int64_t size() const { return some ? std::ssize(*some) : all; }
  int64_t operator[](int64_t i) const { return some ? (*some)[i] : i; }
};

// What the training part has in one column.
struct ColumnContent {
  int64_t there = 0, numbers = 0, missing = 0;
  int64_t disguised = 0;                                              // numbers as people write them
  int64_t leading_zeros = 0;                                          // numbers as identifiers are written
  std::optional<int64_t> first_leading_zero;                          // its row
  std::optional<int64_t> first_text, first_disguised, first_missing;  // rows
  std::vector<double> values;                                         // where all are numbers
};

ColumnContent read_column(const CsvTable& table, size_t column, const TableSchemaContent& schema,
                          const Rows& rows) {
  ColumnContent content;
  for (int64_t i = 0; i < rows.size(); ++i) {
    const int64_t row = rows[i];
    const std::string_view cell = table.cell(row, column);
    if (schema.is_missing(cell)) {
      if (++content.missing == 1) content.first_missing = row;
      continue;
    }
    ++content.there;
    if (const auto value = data::parse_number(cell, schema.decimal)) {
      if (++content.numbers == 1) content.values.reserve(rows.size() - i);
      if (content.numbers == content.there) content.values.push_back(*value);
      if (internal::has_leading_zeros(cell) && ++content.leading_zeros == 1) content.first_leading_zero = row;
    } else {
      if (!content.first_text) content.first_text = row;
      content.values = {};
      if (internal::disguised_number(cell, schema.decimal)) {
        ++content.disguised;
        if (!content.first_disguised) content.first_disguised = row;
      }
    }
  }
  return content;
}

WordCounts words_of(const CsvTable& table, size_t column, const TableSchemaContent& schema,
                    const Rows& rows) {
  WordCounts words(table, column);
  for (int64_t i = 0; i < rows.size(); ++i)
    if (!schema.is_missing(table.cell(rows[i], column))) words.add(rows[i]);
  words.finish();
  return words;
}

[[noreturn]] void refuse_disguised(const CsvTable& table, size_t column, const ColumnContent& content,
                                   char decimal, const char* advice) {
  const std::string_view cell = table.cell(*content.first_disguised, column);
  const auto number = internal::disguised_number(cell, decimal);
  const bool is_mark = number->why.starts_with("the decimal mark");
  throw DataError(fmt::format(
      "{}: '{}' is a number with {}, as {} of the column's {} values are: {}{}",
      table.place(*content.first_disguised, column), internal::spelled_out(cell), number->why,
      content.disguised, content.there,
      is_mark ? "say so (decimal)" : fmt::format("write plain numbers, {}", number->plain), advice));
}

[[noreturn]] void refuse_text(const CsvTable& table, size_t column, const ColumnContent& content,
                              const std::string& advice) {
  throw DataError(fmt::format("{}: '{}' is no number{}", table.place(*content.first_text, column),
                              internal::spelled_out(table.cell(*content.first_text, column)), advice));
}

bool is_in(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

TableColumnKind kind_of(const CsvTable& table, size_t column, const ColumnContent& content,
                        const TableOptions& options) {
  const std::string_view name = table.columns()[column];
  if (is_in(options.categories, name)) return TableColumnKind::kCategory;
  const bool said = is_in(options.numbers, name);
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

void require_few(const WordCounts& words, std::string_view column, const TableOptions& options) {
  if (std::ssize(words) > options.largest_vocabulary)
    throw DataError(fmt::format(
        "column '{}' has {} different values, more than {}: if it names the rows say so (id); if it "
        "tells nothing leave it out (ignored); else raise largest_vocabulary",
        column, words.size(), options.largest_vocabulary));
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

// Postal codes, telephone and article numbers: 00123 would be learnt from as 123, and as more than 00122.
void warn_of_leading_zeros(const CsvTable& table, size_t column, const ColumnContent& content) {
  if (content.leading_zeros == 0 || rank() != 0) return;
  log_warning(fmt::format(
      "{}: '{}' begins with a zero, as {} of the column's {} values do, and is learnt from as the number it "
      "spells, without that zero. Codes and names of things are categories: say so (categories), or leave "
      "the column out (ignored); of what is a number say that (numbers)",
      table.place(*content.first_leading_zero, column), table.cell(*content.first_leading_zero, column),
      content.leading_zeros, content.there));
}

// Numbers that float64 does not tell apart: identifiers, or times counted from long ago.
void require_told_apart(const CsvTable& table, size_t column, const TableSchemaContent& schema,
                        const Rows& rows) {
  std::optional<std::pair<int64_t, std::string>> first;
  for (int64_t i = 0; i < rows.size(); ++i) {
    const std::string_view cell = table.cell(rows[i], column);
    if (schema.is_missing(cell)) continue;
    std::string digits = internal::exact_digits(cell, schema.decimal);
    if (digits.empty()) return;
    if (!first)
      first.emplace(rows[i], std::move(digits));
    else if (digits != first->second)
      throw DataError(fmt::format(
          "{}: '{}' and '{}' are the same number in float64, as all are of the column: subtract what they "
          "have in common, say that they are categories or name the rows (categories, id), or leave them "
          "out (ignored)",
          table.place(rows[i], column), table.cell(first->first, column), cell));
  }
}

// The moments of a column of numbers. A warning where a few of them would hide the others.
TableMoments moments_in(const CsvTable& table, std::string_view column, const std::vector<double>& values) {
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
std::vector<std::string> classes_of(const CsvTable& table, std::string_view target, const WordCounts& words,
                                    bool are_numbers, char decimal) {
  std::vector<std::string> classes, other;
  if (!are_numbers) {
    classes.reserve(words.size());
    for (size_t i = 0; i < words.size(); ++i) classes.emplace_back(words.word(i));
    return classes;
  }
  classes = internal::number_words(words, decimal, &other);
  if (!other.empty())
    log_info(fmt::format("'{}', column '{}': equal numbers are one class ({} are others of the {} classes)",
                         table.path(), target, internal::first_names(other), classes.size()));
  return classes;
}

void learn_target(const CsvTable& table, size_t at, const Rows& rows, const TableOptions& options,
                  TableSchemaContent* schema) {
  const std::string_view name = table.columns()[at];
  ColumnContent content = read_column(table, at, *schema, rows);
  if (content.missing > 0)
    throw DataError(fmt::format("{}: the target is missing, here and in {} of {} rows: leave these out",
                                table.place(*content.first_missing, at), content.missing, rows.size()));
  if (options.task == TableTask::kRegression) {
    if (content.first_disguised)
      refuse_disguised(table, at, content, options.decimal, "; it is the target of a regression");
    if (content.first_text)
      refuse_text(table, at, content, ": the target of a regression; is it a classification?");
    if (internal::are_equal(content.values)) {
      require_told_apart(table, at, *schema, rows);
      throw DataError(fmt::format("column '{}' has one value alone, {}: there is nothing to learn", name,
                                  table.cell(rows[0], at)));
    }
    schema->target_moments = moments_in(table, name, content.values);
    internal::warn_of_thousands(table, at, options.decimal, "");
    return;
  }
  content.values = {};
  const bool are_numbers = content.numbers == content.there;
  const WordCounts words = words_of(table, at, *schema, rows);
  schema->classes = classes_of(table, name, words, are_numbers, options.decimal);
  if (schema->classes.size() < 2)
    throw DataError(fmt::format("column '{}' has one class alone, '{}': there is nothing to learn", name,
                                schema->classes[0]));
  if (std::ssize(schema->classes) > options.largest_vocabulary)
    throw DataError(
        fmt::format("the target '{}' has {} different values: a number to be learnt is a "
                    "regression; for so many classes raise largest_vocabulary",
                    name, schema->classes.size()));
  if (are_numbers) return;
  internal::warn_of_similar(table, name, words, options.decimal, "classes");
  internal::warn_of_mixed(table, name, words, options.decimal, "classes", "");
}

void learn_feature(const CsvTable& table, size_t at, const Rows& rows, const TableOptions& options,
                   TableSchemaContent* schema) {
  const std::string_view name = table.columns()[at];
  ColumnContent content = read_column(table, at, *schema, rows);
  if (content.there == 0)
    throw DataError(
        fmt::format("column '{}' of '{}' has no value in any row to learn from: leave it out (ignored)", name,
                    table.path()));
  const TableColumnKind kind = kind_of(table, at, content, options);
  auto& column = schema->add_column(name, kind, content.missing > 0);
  if (kind == TableColumnKind::kNumber) {
    column.moments = moments_in(table, name, content.values);
    if (internal::are_equal(content.values)) {
      require_told_apart(table, at, *schema, rows);
      schema->add_only_value(column);
      return;
    }
    if (!is_in(options.numbers, name)) {
      warn_of_leading_zeros(table, at, content);
      internal::warn_of_thousands(table, at, options.decimal, "; else say that it is right (numbers)");
    }
    internal::warn_of_row_numbers(table, at, options.decimal);
    return;
  }
  content.values = {};
  const WordCounts words = words_of(table, at, *schema, rows);
  require_few(words, name, options);
  for (size_t i = 0; i < words.size(); ++i) schema->texts.add(words.word(i));
  column.words = static_cast<uint32_t>(words.size());  // as many as rows at most
  internal::warn_of_similar(table, name, words, options.decimal, "categories");
  if (is_in(options.categories, name)) return;
  internal::warn_of_mixed(table, name, words, options.decimal, "categories",
                          ", or say that the column is one of categories (categories)");
  internal::warn_of_numbers_in_words(table, name, words, options.decimal);
}

std::shared_ptr<const TableSchemaContent> learnt(const CsvTable& table, const TableOptions& options,
                                                 const Rows& rows) {
  check_names(table, options);
  if (rows.size() == 0) throw DataError(fmt::format("'{}' has no rows to learn from", table.path()));
  auto schema = std::make_shared<TableSchemaContent>();
  schema->task = options.task;
  schema->target = options.target;
  schema->id = options.id;
  schema->training_part = options.training_part;
  schema->decimal = options.decimal;
  std::vector<std::string> missing_words = {""};
  for (const std::string& word : options.missing_words) missing_words.push_back(internal::lower_case(word));
  schema->set_missing_words(std::move(missing_words));
  schema->columns.reserve(table.columns().size());
  for (size_t c = 0; c < table.columns().size(); ++c) {
    const std::string_view name = table.columns()[c];
    if (is_in(options.ignored, name) || name == options.id) continue;
    if (name == options.target)
      learn_target(table, c, rows, options, schema.get());
    else
      learn_feature(table, c, rows, options, schema.get());
  }
  if (schema->columns.empty())
    throw DataError(fmt::format("'{}' has no column to learn from, beside the target", table.path()));
  return schema;
}

}  // namespace

int64_t TableColumn::features() const {
  return (kind == TableColumnKind::kNumber ? 1 : std::ssize(vocabulary)) + (was_missing ? 1 : 0);
}

size_t TableColumns::size() const { return content_->columns.size(); }

TableColumn TableColumns::operator[](size_t i) const {
  const TableSchemaContent::Column& column = content_->columns[i];
  return {.name = content_->texts[column.name],
          .kind = column.is_category ? TableColumnKind::kCategory : TableColumnKind::kNumber,
          .was_missing = column.was_missing,
          .moments = column.moments,
          .vocabulary = {content_->texts, column.name + 1, column.words}};
}

TableTask TableSchema::task() const { return content_->task; }
const std::string& TableSchema::target() const { return content_->target; }
const std::string& TableSchema::id() const { return content_->id; }
const TableMoments& TableSchema::target_moments() const { return content_->target_moments; }
const std::vector<std::string>& TableSchema::class_names() const { return content_->classes; }
bool TableSchema::is_missing(std::string_view cell) const { return content_->is_missing(cell); }
char TableSchema::decimal() const { return content_->decimal; }
const std::vector<std::string>& TableSchema::missing_words() const { return content_->missing_words; }
const std::string& TableSchema::training_part() const { return content_->training_part; }

int64_t TableSchema::features() const {
  int64_t count = 0;
  for (const TableColumn& column : columns()) count += column.features();
  return count;
}

std::vector<std::string> TableSchema::feature_names() const {
  std::vector<std::string> names;
  for (const TableColumn& column : columns()) {
    const std::string name(column.name);
    if (column.kind == TableColumnKind::kNumber) names.push_back(name);
    if (column.kind == TableColumnKind::kCategory)
      for (const std::string_view word : column.vocabulary) names.push_back(fmt::format("{}={}", name, word));
    if (column.was_missing) names.push_back(name + " missing");
  }
  return names;
}

bool TableSchema::operator==(const TableSchema& other) const {
  if (content_ == other.content_) return true;
  const auto rest = [](const TableSchemaContent& c) {
    return std::tie(c.task, c.target, c.id, c.training_part, c.target_moments, c.classes, c.missing_words,
                    c.decimal);
  };
  if (rest(*content_) != rest(*other.content_) || columns().size() != other.columns().size()) return false;
  for (size_t i = 0; i < columns().size(); ++i)
    if (columns()[i] != other.columns()[i]) return false;
  return true;
}

TableSchema TableSchema::fit(const CsvTable& table, const TableOptions& options,
                             std::span<const int64_t> rows) {
  return TableSchema(learnt(table, options, {.some = rows}));
}

TableSchema TableSchema::fit(const CsvTable& table, const TableOptions& options) {
  return TableSchema(learnt(table, options, {.some = std::nullopt, .all = table.rows()}));
}

}  // namespace mox
