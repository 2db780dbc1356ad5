#include "moxing/tabular/table_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

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

// float32 for what a column has learnt of numbers; those beyond it are refused, not made infinite.
float normalised(double value, const TableMoments& moments, const std::string& place) {
  const double result = (value - moments.mean) / moments.deviation;
  if (std::fabs(result) > std::numeric_limits<float>::max())
    throw DataError(
        fmt::format("{}: {} is too far from the mean of the training part, {}", place, value, moments.mean));
  return result;
}

class CellReader {
 public:
  CellReader(const TableSchema& schema, const CsvTable& table, UnseenValue unseen)
      : schema_(schema), table_(table), unseen_(unseen) {}

  float read(const TableColumn& column, int64_t row, size_t at) {
    const std::string_view cell = table_.cell(row, at);
    if (schema_.is_missing(cell)) {
      if (column.was_missing) return kMissing;
      if (unseen_ == UnseenValue::kError)
        throw DataError(
            fmt::format("{}: the value is missing; in training none was. Fill it in, or have it taken "
                        "as the average (unseen: missing)",
                        table_.place(row, at)));
      ++taken_as_missing_[column.name];
      return column.kind == TableColumnKind::kNumber ? 0.0f : kNone;
    }
    if (column.kind == TableColumnKind::kNumber) {
      const auto value = data::parse_number(cell, schema_.decimal());
      if (!value)
        throw DataError(fmt::format("{}: '{}' is no number; in training the column was one of numbers",
                                    table_.place(row, at), cell));
      return normalised(*value, column.moments, table_.place(row, at));
    }
    const auto& words = column.vocabulary;
    const auto found = std::lower_bound(words.begin(), words.end(), cell);
    if (found != words.end() && *found == cell) return static_cast<float>(found - words.begin());
    if (unseen_ == UnseenValue::kError) refuse_word(column, row, at, cell);
    ++taken_as_missing_[column.name];
    return column.was_missing ? kMissing : kNone;
  }

  void report() const {
    for (const auto& [name, count] : taken_as_missing_)
      log_warning(
          fmt::format("'{}': {} value{} of column '{}' {} not in the training part, and {} taken as missing",
                      table_.path(), count, count == 1 ? "" : "s", name, count == 1 ? "was" : "were",
                      count == 1 ? "is" : "are"));
  }

 private:
  [[noreturn]] void refuse_word(const TableColumn& column, int64_t row, size_t at,
                                std::string_view cell) const {
    const std::string nearest = internal::nearest_name(cell, column.vocabulary);
    throw DataError(fmt::format(
        "{}: '{}' is none of the {} categories of training ({}){} It can be taken as a "
        "missing value (unseen: missing)",
        table_.place(row, at), cell, column.vocabulary.size(), internal::first_names(column.vocabulary),
        nearest.empty() ? "." : fmt::format(": is '{}' meant?", nearest)));
  }

  const TableSchema& schema_;
  const CsvTable& table_;
  UnseenValue unseen_;
  std::map<std::string, int64_t> taken_as_missing_;
};

std::vector<int64_t> all_rows(const CsvTable& table) {
  std::vector<int64_t> rows(table.rows());
  std::iota(rows.begin(), rows.end(), int64_t{0});
  return rows;
}

// The cells of the rows as CellReader reads them, row by row.
std::vector<float> read_cells(const TableSchema& schema, const CsvTable& table, std::span<const int64_t> rows,
                              UnseenValue unseen) {
  std::vector<size_t> places;
  for (const TableColumn& column : schema.columns()) places.push_back(table.column(column.name));
  CellReader reader(schema, table, unseen);
  std::vector<float> cells;
  cells.reserve(rows.size() * places.size());
  for (const int64_t row : rows)
    for (size_t c = 0; c < places.size(); ++c)
      cells.push_back(reader.read(schema.columns()[c], row, places[c]));
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

Array read_targets(const TableSchema& schema, const CsvTable& table, std::span<const int64_t> rows) {
  const size_t at = table.column(schema.target());
  const int64_t count = rows.size();
  const bool classes = schema.task() == TableTask::kClassification;
  std::map<std::string_view, int32_t> places;
  for (const std::string& name : schema.class_names())
    places.emplace(name, static_cast<int32_t>(places.size()));
  // Of classes that are numbers a number is meant, however it is spelt.
  std::map<double, int32_t> numbers;
  for (const auto& [name, place] : places)
    if (const auto number = data::parse_number(name, schema.decimal())) numbers.emplace(*number, place);
  if (numbers.size() != places.size()) numbers.clear();
  const auto class_of = [&](std::string_view cell) -> std::optional<int32_t> {
    if (const auto found = places.find(cell); found != places.end()) return found->second;
    if (numbers.empty()) return std::nullopt;
    const auto number = data::parse_number(cell, schema.decimal());
    const auto found = number ? numbers.find(*number) : numbers.end();
    return found == numbers.end() ? std::nullopt : std::optional(found->second);
  };
  Array targets(classes ? DType::kInt32 : DType::kFloat32, {count});
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string_view cell = table.cell(rows[i], at);
    if (schema.is_missing(cell))
      throw DataError(fmt::format("{}: the target is missing", table.place(rows[i], at)));
    if (classes) {
      const auto found = class_of(cell);
      if (!found)
        throw DataError(
            fmt::format("{}: '{}' is none of the {} classes of training ({}){}", table.place(rows[i], at),
                        cell, places.size(), internal::first_names(schema.class_names()),
                        numbers.empty() || std::ssize(places) < kManyClasses
                            ? ""
                            : "; a target that is a number to be estimated is data.task=regression"));
      targets.values<int32_t>()[i] = *found;
    } else {
      const auto value = data::parse_number(cell, schema.decimal());
      if (!value)
        throw DataError(
            fmt::format("{}: '{}' is no number, which the target is", table.place(rows[i], at), cell));
      targets.values<float>()[i] = normalised(*value, schema.target_moments(), table.place(rows[i], at));
    }
  }
  return targets;
}

class TableSource : public RandomAccessSource {
 public:
  TableSource(TableSchema schema, CsvTable table, std::span<const int64_t> rows,
              const TableDatasetOptions& options)
      : schema_(std::move(schema)),
        table_(std::move(table)),
        rows_(rows.begin(), rows.end()),
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

}  // namespace

Dataset table_dataset(const TableSchema& schema, const CsvTable& table, std::span<const int64_t> rows,
                      const TableDatasetOptions& options, SourceLocation where) {
  if (rows.empty()) throw DataError(fmt::format("'{}' has no rows", table.path()));
  return Dataset::from_source(std::make_shared<TableSource>(schema, table, rows, options), where);
}

Dataset table_dataset(const TableSchema& schema, const CsvTable& table, const TableDatasetOptions& options,
                      SourceLocation where) {
  return table_dataset(schema, table, all_rows(table), options, where);
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
