#include "moxing/tabular/table_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <numeric>
#include <optional>

#include "moxing/tabular/internal/cell_words.h"
#include "moxing/tabular/internal/letters.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"
#include "runtime/base/nearest_name.h"

namespace mox {
namespace {

// More numbers than these as classes are rather values to be estimated.
constexpr ptrdiff_t kManyClasses = 20;

using data::CsvTable;

// A cell before it is spread over the features of its column: a number normalised, a category its place in
// the vocabulary; kMissing, or kNone for a category that is none of the vocabulary.
constexpr float kMissing = std::numeric_limits<float>::infinity();
constexpr float kNone = -1;

// In deviations. Of fewer than ten thousand numbers none is so far from their mean.
constexpr int kFar = 100;

// float32 for what a column has learnt of numbers; those beyond it are refused, not made infinite.
float normalised(double value, const TableMoments& moments, const CsvTable& table, int64_t row, size_t at) {
  const double result = (value - moments.mean) / moments.deviation;
  if (std::fabs(result) > std::numeric_limits<float>::max())
    throw DataError(fmt::format("{}: {} is too far from the mean of the training part, {}",
                                table.place(row, at), value, moments.mean));
  return result;
}

class CellReader {
 public:
  CellReader(const TableSchema& schema, const CsvTable& table, UnseenValue unseen)
      : schema_(schema), table_(table), unseen_(unseen) {
    places_.reserve(schema.columns().size());
    for (const TableColumn& column : schema.columns()) places_.push_back(table.column(column.name));
    taken_as_missing_.resize(places_.size());
  }

  // The value of a row in column `c` of the schema.
  float read(int64_t row, size_t c) {
    const TableColumn column = schema_.columns()[c];
    const size_t at = places_[c];
    const std::string_view cell = table_.cell(row, at);
    if (schema_.is_missing(cell)) {
      if (column.was_missing) return kMissing;
      if (unseen_ == UnseenValue::kError)
        throw DataError(
            fmt::format("{}: the value is missing; in training none was. Fill it in, or have it taken "
                        "as the average (unseen: missing)",
                        table_.place(row, at)));
      ++taken_as_missing_[c];
      return column.kind == TableColumnKind::kNumber ? 0.0f : kNone;
    }
    if (column.kind == TableColumnKind::kNumber) {
      const auto value = data::parse_number(cell, schema_.decimal());
      if (!value)
        throw DataError(fmt::format("{}: '{}' is no number; in training the column was one of numbers",
                                    table_.place(row, at), cell));
      if (!column.vocabulary.empty() && *value != column.moments.mean) {
        // What the network would make of another value, no row has taught it.
        if (unseen_ == UnseenValue::kError)
          throw DataError(fmt::format(
              "{}: '{}', where all rows of training had {}, of which nothing was learnt. Have it taken as "
              "that (unseen: missing), or train without the column (ignored)",
              table_.place(row, at), cell, column.vocabulary[0]));
        ++taken_as_missing_[c];
        return 0;
      }
      const float result = normalised(*value, column.moments, table_, row, at);
      if (std::fabs(result) > kFar) note_far(c, *value);
      return result;
    }
    const data::TextRange& words = column.vocabulary;
    const auto found = std::lower_bound(words.begin(), words.end(), cell);
    if (found != words.end() && *found == cell) return static_cast<float>(found - words.begin());
    if (unseen_ == UnseenValue::kError) refuse_word(column, row, at, cell);
    ++taken_as_missing_[c];
    return column.was_missing ? kMissing : kNone;
  }

  void report() const {
    for (size_t c = 0; c < taken_as_missing_.size(); ++c)
      if (const int64_t count = taken_as_missing_[c]; count > 0)
        log_warning(fmt::format(
            "'{}': {} value{} of column '{}' {} not in the training part, and {} taken as missing",
            table_.path(), count, count == 1 ? "" : "s", schema_.columns()[c].name,
            count == 1 ? "was" : "were", count == 1 ? "is" : "are"));
    for (size_t c = 0; c < far_.size(); ++c) {
      if (far_[c].count == 0) continue;
      const TableColumn column = schema_.columns()[c];
      log_warning(fmt::format(
          "'{}': {} value{} of column '{}' (such as {:g}) {} more than {} deviations from the mean of the "
          "training part ({:g}, deviation {:g}): in another unit, or for a missing value? What the model "
          "answers to these is a guess",
          table_.path(), far_[c].count, far_[c].count == 1 ? "" : "s", column.name, far_[c].value,
          far_[c].count == 1 ? "is" : "are", kFar, column.moments.mean, column.moments.deviation));
    }
  }

 private:
  [[noreturn]] void refuse_word(const TableColumn& column, int64_t row, size_t at,
                                std::string_view cell) const {
    const std::vector<std::string> words = column.vocabulary.strings();
    const std::string nearest = internal::nearest_name(cell, words);
    throw DataError(fmt::format(
        "{}: '{}' is none of the {} categories of training ({}){} It can be taken as a "
        "missing value (unseen: missing)",
        table_.place(row, at), internal::spelled_out(cell), words.size(), internal::first_names(words),
        nearest.empty() ? "." : fmt::format(": is '{}' meant?", nearest)));
  }

  const TableSchema& schema_;
  const CsvTable& table_;
  UnseenValue unseen_;
  std::vector<size_t> places_;             // of the schema's columns in the table
  std::vector<int64_t> taken_as_missing_;  // by column
  struct Far {
    int64_t count = 0;
    double value = 0;  // the first
  };
  void note_far(size_t c, double value) {
    far_.resize(places_.size());
    if (++far_[c].count == 1) far_[c].value = value;
  }
  std::vector<Far> far_;  // by column, once there is one
};

std::vector<int64_t> all_rows(const CsvTable& table) {
  std::vector<int64_t> rows(table.rows());
  std::iota(rows.begin(), rows.end(), int64_t{0});
  return rows;
}

// The cells of the rows as CellReader reads them, row by row.
std::vector<float> read_cells(const TableSchema& schema, const CsvTable& table, std::span<const int64_t> rows,
                              UnseenValue unseen) {
  CellReader reader(schema, table, unseen);
  const size_t columns = schema.columns().size();
  std::vector<float> cells;
  cells.reserve(rows.size() * columns);
  for (const int64_t row : rows)
    for (size_t c = 0; c < columns; ++c) cells.push_back(reader.read(row, c));
  reader.report();
  return cells;
}

// Spreads the cells of a row over its features.
void write_features(const TableSchema& schema, const float* cells, float* out) {
  for (const TableColumn& column : schema.columns()) {
    const float cell = *cells++;
    const int64_t features = column.features();
    std::fill_n(out, features, 0.0f);
    if (cell == kMissing)
      out[features - 1] = 1;
    else if (column.kind == TableColumnKind::kNumber)
      out[0] = cell;
    else if (cell != kNone)
      out[static_cast<int64_t>(cell)] = 1;
    out += features;
  }
}

// The label of each class, by its name; of classes that are numbers a number is meant, however it is spelt.
class ClassLabels {
 public:
  explicit ClassLabels(const TableSchema& schema) : names_(schema.class_names()), decimal_(schema.decimal()) {
    sorted_.resize(names_.size());
    std::iota(sorted_.begin(), sorted_.end(), 0);
    std::ranges::sort(sorted_, {}, [&](int32_t label) -> const std::string& { return names_[label]; });
    if (!std::ranges::all_of(
            names_, [&](const std::string& n) { return data::parse_number(n, decimal_).has_value(); }))
      return;
    numbers_.reserve(names_.size());
    for (const std::string& name : names_)
      numbers_.push_back({*data::parse_number(name, decimal_), static_cast<int32_t>(std::ssize(numbers_))});
    std::ranges::sort(numbers_, [&](const Numbered& a, const Numbered& b) {
      return a.number != b.number ? a.number < b.number : digits_of(a) < digits_of(b);
    });
    const auto equal = std::ranges::adjacent_find(numbers_, [&](const Numbered& a, const Numbered& b) {
      return a.number == b.number && digits_of(a) == digits_of(b);
    });
    if (equal != numbers_.end()) numbers_.clear();
  }

  bool are_numbers() const { return !numbers_.empty(); }
  std::optional<int32_t> label_of(std::string_view cell) const {
    const auto found = std::ranges::lower_bound(
        sorted_, cell, {}, [&](int32_t label) { return std::string_view(names_[label]); });
    if (found != sorted_.end() && names_[*found] == cell) return *found;
    const auto number = are_numbers() ? data::parse_number(cell, decimal_) : std::nullopt;
    if (!number) return std::nullopt;
    const std::string digits = internal::exact_digits(cell, decimal_);
    auto named = std::ranges::lower_bound(numbers_, *number, {}, &Numbered::number);
    for (; named != numbers_.end() && named->number == *number; ++named)
      if (digits_of(*named) == digits) return named->label;
    return std::nullopt;
  }

 private:
  struct Numbered {
    double number;
    int32_t label;
  };
  // Beyond 2^53 numbers that are equal in float64 differ in these. Not kept: there may be as many classes as
  // a table has rows.
  std::string digits_of(const Numbered& named) const {
    return internal::exact_digits(names_[named.label], decimal_);
  }

  const std::vector<std::string>& names_;
  char decimal_;
  std::vector<int32_t> sorted_;    // labels, by their names
  std::vector<Numbered> numbers_;  // ascending
};

Array read_targets(const TableSchema& schema, const CsvTable& table, std::span<const int64_t> rows) {
  const size_t at = table.column(schema.target());
  const int64_t count = rows.size();
  const bool classes = schema.task() == TableTask::kClassification;
  const ClassLabels labels(schema);
  Array targets(classes ? DType::kInt32 : DType::kFloat32, {count});
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string_view cell = table.cell(rows[i], at);
    if (schema.is_missing(cell))
      throw DataError(fmt::format("{}: the target is missing", table.place(rows[i], at)));
    if (classes) {
      const auto found = labels.label_of(cell);
      if (!found)
        throw DataError(
            fmt::format("{}: '{}' is none of the {} classes of training ({}){}", table.place(rows[i], at),
                        internal::spelled_out(cell), schema.class_names().size(),
                        internal::first_names(schema.class_names()),
                        !labels.are_numbers() || std::ssize(schema.class_names()) < kManyClasses
                            ? ""
                            : "; a target that is a number to be estimated is data.task=regression"));
      targets.values<int32_t>()[i] = *found;
    } else {
      const auto value = data::parse_number(cell, schema.decimal());
      if (!value)
        throw DataError(
            fmt::format("{}: '{}' is no number, which the target is", table.place(rows[i], at), cell));
      targets.values<float>()[i] = normalised(*value, schema.target_moments(), table, rows[i], at);
    }
  }
  return targets;
}

class TableSource : public RandomAccessSource {
 public:
  TableSource(TableSchema schema, CsvTable table, std::vector<int64_t> rows,
              const TableDatasetOptions& options)
      : schema_(std::move(schema)),
        table_(std::move(table)),
        rows_(std::move(rows)),
        cells_(read_cells(schema_, table_, rows_, options.unseen)),
        file_(std::filesystem::path(table_.path()).filename().string()) {
    if (!schema_.id().empty()) id_ = table_.column(schema_.id());
    signature_.push_back({DType::kFloat32, Shape{schema_.features()}});
    if (!options.with_target) return;
    targets_ = read_targets(schema_, table_, rows_);
    signature_.push_back({targets_->dtype(), Shape{}});
  }

  int64_t size() const override { return rows_.size(); }
  const std::vector<TensorType>& signature() const override { return signature_; }

  void read(int64_t index, const SampleContext&, std::span<std::byte* const> components) const override {
    const size_t i = index;
    write_features(schema_, cells_.data() + i * schema_.columns().size(),
                   reinterpret_cast<float*>(components[0]));
    if (targets_) std::memcpy(components[1], static_cast<const std::byte*>(targets_->data()) + i * 4, 4);
  }

  std::string name(int64_t index) const override {
    const int64_t row = rows_[index];
    return id_ ? std::string(table_.cell(row, *id_)) : fmt::format("{}:{}", file_, table_.line(row));
  }

  std::string describe() const override {
    uint32_t sum = crc32(std::as_bytes(std::span(cells_)));
    if (targets_) sum = crc32({static_cast<const std::byte*>(targets_->data()), targets_->bytes()}, sum);
    return fmt::format("table of {} rows x {} features, crc {:08x}", rows_.size(), schema_.features(), sum);
  }

 private:
  TableSchema schema_;
  CsvTable table_;
  std::vector<int64_t> rows_;
  std::vector<float> cells_;
  std::optional<Array> targets_;
  std::optional<size_t> id_;
  std::string file_;
  std::vector<TensorType> signature_;
};

Dataset dataset_of(const TableSchema& schema, const CsvTable& table, std::vector<int64_t> rows,
                   const TableDatasetOptions& options, SourceLocation where) {
  if (rows.empty()) throw DataError(fmt::format("'{}' has no rows", table.path()));
  return Dataset::from_source(std::make_shared<TableSource>(schema, table, std::move(rows), options), where);
}

}  // namespace

Dataset table_dataset(const TableSchema& schema, const CsvTable& table, std::span<const int64_t> rows,
                      const TableDatasetOptions& options, SourceLocation where) {
  return dataset_of(schema, table, {rows.begin(), rows.end()}, options, where);
}

Dataset table_dataset(const TableSchema& schema, const CsvTable& table, const TableDatasetOptions& options,
                      SourceLocation where) {
  return dataset_of(schema, table, all_rows(table), options, where);
}

std::vector<int64_t> rows_of_classes(const TableSchema& schema, const CsvTable& table,
                                     std::span<const int64_t> rows) {
  if (schema.task() != TableTask::kClassification)
    throw InvalidArgument("rows_of_classes: the target is a number, and has no classes");
  std::vector<int64_t> counts(schema.class_names().size());
  const Array targets = read_targets(schema, table, rows);
  for (const int32_t label : targets.values<int32_t>()) ++counts[label];
  return counts;
}

Array table_features(const TableSchema& schema, const CsvTable& table, UnseenValue unseen) {
  const std::vector<float> cells = read_cells(schema, table, all_rows(table), unseen);
  Array features(DType::kFloat32, {table.rows(), schema.features()});
  const size_t width = schema.features();
  for (size_t row = 0; row < static_cast<size_t>(table.rows()); ++row)
    write_features(schema, cells.data() + row * schema.columns().size(),
                   features.values<float>().data() + row * width);
  return features;
}

}  // namespace mox
