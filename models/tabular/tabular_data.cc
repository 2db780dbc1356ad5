#include "models/tabular/tabular_data.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "models/tabular/absent_classes.h"
#include "models/tabular/learnt_rows.h"
#include "models/tabular/schema_options.h"
#include "moxing/prediction/predictions_file.h"
#include "runtime/base/file.h"

namespace tabular {
namespace {

namespace fs = std::filesystem;
using Texts = std::vector<std::string>;

char one_character(const std::string& flag) {
  const std::string text = mox::flag(flag);
  if (text == "tab" || text == "\\t") return '\t';
  if (text.size() != 1)
    throw mox::ConfigError(flag + " must be one character, or 'tab'; it is '" + text + "'");
  return text[0];
}

// In data_url, or itself where the name begins with /.
std::string path_of_table(const std::string& flag) {
  return (fs::path(mox::flag("data_url")) / mox::flag(flag)).string();
}

// Predictions replace none of the tables, whichever is predicted from.
void require_other_predictions(const std::string& predicted_from) {
  const std::string predictions = mox::flag("predictions");
  mox::require_other_than_input(predictions, predicted_from);
  for (const std::string option : {"data.train_file", "data.eval_file"})
    if (!mox::flag(option).empty())
      mox::require_other_than_input(predictions, path_of_table(option), "of --" + option);
}

mox::data::CsvTable read_table(const std::string& flag) {
  const std::string name = mox::flag(flag);
  const std::string cache = mox::flag("data.cache");
  if (cache != "none" && cache != "directory")
    throw mox::ConfigError("data.cache must be none or directory; it is '" + cache + "'");
  if (name.empty()) throw mox::ConfigError("run_mode " + mox::flag("run_mode") + " needs --" + flag);
  const std::string place = mox::flag("data_url");
  if (!mox::file::is_remote(place) && mox::is_there_as_file(place))
    throw mox::ConfigError("data_url is the directory of the tables, '" + place +
                           "' is a file: give its directory, and its name as --" + flag);
  return mox::data::read_csv_table(path_of_table(flag), one_character("data.delimiter"));
}

mox::data::CsvTable read_training_table() {
  try {
    return read_table("data.train_file");
  } catch (const mox::NotFound& error) {
    if (mox::flag("run_mode") != "eval") throw;
    throw mox::NotFound(
        std::string(error.what()) +
        ". Without data.eval_file the rows that the training held back of data.train_file are "
        "evaluated: name the table with other rows as --data.eval_file");
  }
}

std::vector<int64_t> all_rows(const mox::data::CsvTable& table) {
  std::vector<int64_t> rows(table.rows());
  std::iota(rows.begin(), rows.end(), int64_t{0});
  return rows;
}

mox::TableOptions table_options(const std::string& training_part) {
  const std::string task = mox::flag("data.task");
  if (task != "regression" && task != "classification")
    throw mox::ConfigError("data.task must be regression or classification; it is '" + task + "'");
  if (mox::flag("data.target").empty())
    throw mox::ConfigError("data.target must name the column that is to be learnt");
  return {.target = mox::flag("data.target"),
          .task = task == "regression" ? mox::TableTask::kRegression : mox::TableTask::kClassification,
          .numbers = mox::get_flag<Texts>("data.numbers"),
          .categories = mox::get_flag<Texts>("data.categories"),
          .ignored = mox::get_flag<Texts>("data.ignored"),
          .id = mox::flag("data.id"),
          .missing_words = mox::get_flag<Texts>("data.missing_words"),
          .decimal = one_character("data.decimal"),
          .largest_vocabulary = mox::get_flag<int64_t>("data.largest_vocabulary"),
          .training_part = training_part};
}

mox::UnseenValue unseen() {
  const std::string text = mox::flag("data.unseen");
  if (text != "error" && text != "missing")
    throw mox::ConfigError("data.unseen must be error or missing; it is '" + text + "'");
  return text == "error" ? mox::UnseenValue::kError : mox::UnseenValue::kMissing;
}

// The evaluation measures what was held back from the training, of the same data.
void require_same_part(const mox::TableSchema& schema, const std::string& name) {
  if (schema.training_part() == name) return;
  throw mox::ConfigError(
      "the model was trained on " +
      (schema.training_part().empty() ? "a file of its own" : schema.training_part()) +
      ", and the rows to evaluate are those held back from " + name +
      ": it may have learnt some of them. Give the file and the options of the training (data.train_file, "
      "data.eval_fraction, data.split_seed), or other rows in --data.eval_file");
}

}  // namespace

void define_data_flags() {
  mox::define_flag("data.cache", "none",
                   "With a data_url in an object store: none (tables are read there) or directory (it is "
                   "copied to this machine first).");
  mox::define_flag("data.train_file", "train.csv", "The table to learn from, in data_url.");
  mox::define_flag(
      "data.eval_file", "",
      "The table to evaluate on, in data_url. Empty: rows that are held back of data.train_file.");
  mox::define_flag("data.predict_file", "predict.csv",
                   "The table to predict from, in data_url. It needs no target.");
  mox::define_flag("data.eval_fraction", 0.2,
                   "Share of the rows of data.train_file that are held back for the evaluation, without "
                   "data.eval_file; in (0, 1).");
  mox::define_flag("data.split_seed", 1, "Which rows are held back.");
  mox::define_flag("data.target", "", "The column that is to be learnt.");
  mox::define_flag("data.task", "classification", "What the target is: classification or regression.");
  mox::define_flag("data.id", "", "A column that names the rows, in predictions too. It is no feature.");
  mox::define_flag("data.numbers", Texts{}, "Columns of numbers, where their cells leave it open.");
  mox::define_flag("data.categories", Texts{}, "Columns of categories, though their cells may be numbers.");
  mox::define_flag("data.ignored", Texts{}, "Columns that are not learnt from.");
  mox::define_flag("data.missing_words", mox::TableOptions().missing_words,
                   "Cells that stand for a missing value, as empty ones do; in any case of letters.");
  mox::define_flag(
      "data.unseen", "error",
      "A category that the training did not have, or a value that is missing where none was: error, "
      "or missing (taken as missing, and counted).");
  mox::define_flag("data.delimiter", ",", "Between the cells: a character, or tab.");
  mox::define_flag("data.decimal", ".", "The decimal mark: . or ,");
  mox::define_flag("data.largest_vocabulary", 1000, "More categories than these in a column are refused.");
}

TabularData::Parts TabularData::read_parts() {
  const mox::data::CsvTable table = read_training_table();
  if (!mox::flag("data.eval_file").empty()) {
    const mox::data::CsvTable other = read_table("data.eval_file");
    return {{table, all_rows(table)}, {other, all_rows(other)}, all_rows_of(table), false};
  }
  const double fraction = mox::get_flag<double>("data.eval_fraction");
  const size_t rows = table.rows();
  const auto held = static_cast<size_t>(std::llround(fraction * rows));
  if (!(fraction > 0 && fraction < 1) || held == 0 || held == rows)
    throw mox::ConfigError("data.eval_fraction is " + mox::flag("data.eval_fraction") + " of " +
                           std::to_string(rows) + " rows: some must be held back, and some be left");
  const uint64_t seed = mox::get_flag<int64_t>("data.split_seed");
  const mox::Permutation order(rows, seed, mox::stable_hash("tabular/split"));
  Parts parts{{table, {}}, {table, {}}, "", true};
  for (size_t i = 0; i < rows; ++i) (i < held ? parts.evaluation : parts.training).rows.push_back(order(i));
  std::sort(parts.evaluation.rows.begin(), parts.evaluation.rows.end());
  std::sort(parts.training.rows.begin(), parts.training.rows.end());
  parts.name = std::to_string(rows - held) + " of the " + std::to_string(rows) + " rows of a file (CRC-32 " +
               std::to_string(table.checksum()) + "), chosen by seed " + std::to_string(seed);
  return parts;
}

mox::Dataset TabularData::samples_of(const Part& part, bool with_target) const {
  return mox::table_dataset(*schema_, part.table, part.rows,
                            {.with_target = with_target, .unseen = unseen()});
}

TabularData::TabularData() {
  const mox::ModeKeys mode = mox::mode_from_string(mox::flag("run_mode"));
  schema_ = mox::kept_table_schema(mode, mox::log_dir_of_run(), mox::checkpoint_path_of_run());
  if (schema_) require_options_of(*schema_);
  if (mode == mox::ModeKeys::PREDICT) {
    const mox::data::CsvTable table = read_table("data.predict_file");
    require_other_predictions(table.path());
    prediction_ = samples_of({table, all_rows(table)}, false);
    return;
  }
  if (mode == mox::ModeKeys::EVAL && !mox::flag("data.eval_file").empty()) {
    const mox::data::CsvTable table = read_table("data.eval_file");
    const Part part{table, all_rows(table)};
    evaluation_ = samples_of(part, true);
    warn_of_learnt_file(*schema_, table);
    warn_of_absent_classes(*schema_, table, part.rows);
    return;
  }
  const Parts parts = read_parts();
  if (schema_ && mode == mox::ModeKeys::TRAIN) require_known_columns(*schema_, parts.training.table);
  if (!schema_)
    schema_ = mox::TableSchema::fit(parts.training.table, table_options(parts.name), parts.training.rows);
  else if (parts.is_split)
    require_same_part(*schema_, parts.name);
  evaluation_ = samples_of(parts.evaluation, true);
  if (!parts.is_split) warn_of_learnt_rows(*schema_, parts.training.table, parts.evaluation.table);
  warn_of_absent_classes(*schema_, parts.evaluation.table, parts.evaluation.rows);
  if (mode == mox::ModeKeys::TRAIN) training_ = samples_of(parts.training, true);
}

mox::Dataset TabularData::dataset(mox::ModeKeys mode) const {
  if (mode == mox::ModeKeys::PREDICT) return *prediction_;
  if (mode == mox::ModeKeys::EVAL) return *evaluation_;
  return training_->shuffle(training_->cardinality()).repeat();
}

}  // namespace tabular
