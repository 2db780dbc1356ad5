#include "models/tabular/learnt_rows.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "runtime/base/log.h"

namespace tabular {
namespace {

// A row as text: the cells that the model sees, and the target.
class RowText {
 public:
  RowText(const mox::TableSchema& schema, const mox::data::CsvTable& table) : table_(table) {
    for (const mox::TableColumn& column : schema.columns()) places_.push_back(table.column(column.name));
    places_.push_back(table.column(schema.target()));
  }
  std::string operator()(int64_t row) const {
    std::string text;
    for (const size_t place : places_) (text += table_.cell(row, place)) += '\n';
    return text;
  }

 private:
  const mox::data::CsvTable& table_;
  std::vector<size_t> places_;
};

std::string mark_of(const mox::data::CsvTable& table) {
  return "rows of a file (CRC-32 " + std::to_string(table.checksum()) + ")";
}

}  // namespace

std::string all_rows_of(const mox::data::CsvTable& table) {
  return "the " + std::to_string(table.rows()) + " " + mark_of(table);
}

void warn_of_learnt_rows(const mox::TableSchema& schema, const mox::data::CsvTable& training,
                         const mox::data::CsvTable& evaluation) {
  if (training.checksum() == evaluation.checksum() || mox::rank() != 0) return;
  // Two rows of one hash would be counted as one, one pair in 2^64: the texts take several times the table.
  std::vector<size_t> learnt;
  learnt.reserve(training.rows());
  const std::hash<std::string> hash;
  const RowText of_training(schema, training), of_evaluation(schema, evaluation);
  for (int64_t row = 0; row < training.rows(); ++row) learnt.push_back(hash(of_training(row)));
  std::ranges::sort(learnt);
  int64_t known = 0;
  for (int64_t row = 0; row < evaluation.rows(); ++row)
    known += std::ranges::binary_search(learnt, hash(of_evaluation(row)));
  if (known == 0 || 2 * known < evaluation.rows()) return;
  mox::log_warning("data.eval_file: " + std::to_string(known) + " of the " +
                   std::to_string(evaluation.rows()) + " rows of '" + evaluation.path() + "' are rows of '" +
                   training.path() +
                   "', which is trained on. What an evaluation measures on them is not how well others are "
                   "answered");
}

void warn_of_learnt_file(const mox::TableSchema& schema, const mox::data::CsvTable& evaluation) {
  const std::string& part = schema.training_part();
  // All of it is found by mox::run.
  if (part.find(mark_of(evaluation)) == std::string::npos || part == all_rows_of(evaluation)) return;
  if (mox::rank() == 0)
    mox::log_warning(
        "data.eval_file: the model has learnt " + part + ", and '" + evaluation.path() +
        "' is that file. What an evaluation measures on it is not how well other rows are answered; "
        "without data.eval_file the rows are taken that were held back");
}

}  // namespace tabular
