// TableSchema: what a model knows of a table that it was trained on, so that it reads every other one alike:
// which columns it takes, their types, mean and deviation of numbers, the vocabulary of categories.
//
//   auto table = mox::data::read_csv_table("train.csv");
//   auto schema = mox::TableSchema::fit(table, {.target = "price"});
//   mox::Dataset samples = mox::table_dataset(schema, table);  // {features, target}
//
// It is made of the training part alone, and kept in the checkpoints of the run (table_schema_hook), where
// evaluation and prediction find it (kept_table_schema).
//
// Features. A number is (value - mean) / deviation, 0 where it is missing. A category is one feature a word
// of the vocabulary, 1 for the cell's and 0 for the others. A column that lacked values in training has one
// feature more, which is 1 where the value is missing.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "moxing/formats/csv_table.h"

namespace mox {

enum class TableTask { kRegression, kClassification };
enum class TableColumnKind { kNumber, kCategory };

// Of the values of a column of numbers that are there: the mean, and the root of the mean squared difference
// from it (divided by their number), 1 for values that are all equal.
struct TableMoments {
  double mean = 0, deviation = 1;
  bool operator==(const TableMoments&) const = default;
};

// A view: valid while the schema or a copy of it lives.
struct TableColumn {
  std::string_view name;
  TableColumnKind kind = TableColumnKind::kNumber;
  bool was_missing = false;         // in some row of the training part
  TableMoments moments = {};        // of numbers
  data::TextRange vocabulary = {};  // of categories: sorted by bytes; else where all are equal the one
  bool operator==(const TableColumn&) const = default;

  int64_t features() const;
};

namespace internal {
struct TableSchemaContent;
}

// All columns of a schema, for a loop; a view as each of them is.
class TableColumns {
 public:
  class Iterator {
   public:
    Iterator(const TableColumns& columns, size_t at) : content_(columns.content_), at_(at) {}
    TableColumn operator*() const { return TableColumns(content_)[at_]; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    const internal::TableSchemaContent* content_;
    size_t at_;
  };

  explicit TableColumns(const internal::TableSchemaContent* content) : content_(content) {}
  size_t size() const;
  TableColumn operator[](size_t i) const;
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size()}; }

 private:
  const internal::TableSchemaContent* content_;
};

struct TableOptions {
  std::string target;
  TableTask task = TableTask::kRegression;
  // Columns whose type is said. Of the others those are numbers whose cells all are, and those categories of
  // whose cells at most half are, even as people write them (1,342.0 or 12.3%); a column in between is
  // refused until it is said.
  std::vector<std::string> numbers = {}, categories = {};
  std::vector<std::string> ignored = {};  // columns that are no features
  std::string id = {};                    // the column that names the rows; no feature
  // Cells that stand for a missing value, besides empty ones. In any case of letters.
  std::vector<std::string> missing_words = data::missing_words();
  char decimal = '.';
  int64_t largest_vocabulary = 1000;  // a column with more categories is refused
  std::string training_part = {};     // of which data the rows are, in words that identify it; kept as it is
};

// What is done with a category that the training part did not have, and with a missing value in a column that
// had none there.
enum class UnseenValue {
  kError,    // refused, naming the line
  kMissing,  // a number is the mean, a category none of the vocabulary (or the missing one, where there is
             // one)
};

// A handle to what does not change: copying is cheap.
class TableSchema {
 public:
  // Of the rows [numbers from 0], or of all. Classes that are all numbers are one where these are equal (0
  // and 0.0), called as most rows have it. Words that differ only in case or spaces or look the same, and
  // categories that are equal numbers, are different ones, as are numbers and words in a column that has both
  // (among features: one that `categories` does not name); numbers of a feature that begin with a zero
  // (00123), which `numbers` does not name, are without it: a warning for each column, of rank 0. Throws
  // NotFound for a column that is not there; InvalidArgument for one that is named twice (as target and id,
  // say); DataError for a table that cannot be learnt from: no rows, no feature, a column without any value,
  // one that is neither numbers nor categories, too many categories, a target that is missing or (regression)
  // no number, a class or a value that is the only one.
  static TableSchema fit(const data::CsvTable& table, const TableOptions& options,
                         std::span<const int64_t> rows);
  static TableSchema fit(const data::CsvTable& table, const TableOptions& options);

  TableColumns columns() const& { return TableColumns(content_.get()); }  // in the order of the features
  TableColumns columns() const&& = delete;                                // which would outlive the schema
  int64_t features() const;
  std::vector<std::string> feature_names() const;  // "age", "age missing", "city=Bern"

  TableTask task() const;
  const std::string& target() const;
  const std::string& id() const;                        // "" if rows have no name
  const TableMoments& target_moments() const;           // regression
  const std::vector<std::string>& class_names() const;  // classification: by label
  bool is_missing(std::string_view cell) const;
  char decimal() const;
  const std::vector<std::string>& missing_words() const;  // in lower case, "" too
  const std::string& training_part() const;

  // As text that from_json reads: numbers with all of their digits. from_json throws DataError, naming
  // `origin`, for what to_json cannot have written.
  std::string to_json() const;
  static TableSchema from_json(std::string_view text, const std::string& origin);

  bool operator==(const TableSchema& other) const;

 private:
  explicit TableSchema(std::shared_ptr<const internal::TableSchemaContent> content)
      : content_(std::move(content)) {}

  std::shared_ptr<const internal::TableSchemaContent> content_;
};

}  // namespace mox
