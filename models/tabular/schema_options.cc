#include "models/tabular/schema_options.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/log.h"
#include "runtime/base/nearest_name.h"

namespace tabular {
namespace {

using Texts = std::vector<std::string>;

[[noreturn]] void refuse(const std::string& flag, const std::string& trained) {
  throw mox::ConfigError(
      flag + " is '" + mox::flag(flag) + "' (" + mox::option_origin(flag) + "), but " + trained +
      ". The schema that is kept with the model counts: leave the option out to go on with "
      "it, or train anew, in another train_url and without checkpoint_path");
}

void require_same(const std::string& flag, const std::string& trained, const std::string& what) {
  if (mox::is_given(flag) && mox::flag(flag) != trained)
    refuse(flag, trained.empty() ? "the model was trained without " + what
                                 : "the model was trained with '" + trained + "' as " + what);
}

std::optional<mox::TableColumn> column_of(const mox::TableSchema& schema, std::string_view name) {
  for (const mox::TableColumn& column : schema.columns())
    if (column.name == name) return column;
  return std::nullopt;
}

const char* words_of(mox::TableColumnKind kind) {
  return kind == mox::TableColumnKind::kNumber ? "numbers" : "categories";
}

void require_kinds(const mox::TableSchema& schema, const std::string& flag, mox::TableColumnKind kind) {
  if (!mox::is_given(flag)) return;
  for (const std::string& name : mox::get_flag<Texts>(flag)) {
    const std::optional<mox::TableColumn> column = column_of(schema, name);
    if (!column) refuse(flag, "column '" + name + "' is none of those that the model learnt from");
    if (column->kind != kind)
      refuse(flag, "the model took column '" + name + "' as " + words_of(column->kind));
  }
}

void require_missing_words(const mox::TableSchema& schema) {
  const std::string flag = "data.missing_words";
  if (!mox::is_given(flag)) return;
  std::set<std::string> now = {""};
  for (const std::string& word : mox::get_flag<Texts>(flag)) now.insert(mox::internal::lower_case(word));
  const std::set<std::string> trained(schema.missing_words().begin(), schema.missing_words().end());
  if (now == trained) return;
  std::string words;
  for (const std::string& word : trained)
    if (!word.empty()) words += (words.empty() ? "" : ", ") + word;
  refuse(flag,
         "to the model these stood for a missing value: " + (words.empty() ? "empty cells alone" : words));
}

}  // namespace

void require_options_of(const mox::TableSchema& schema) {
  require_same("data.target", schema.target(), "its target");
  const bool has_classes = schema.task() == mox::TableTask::kClassification;
  require_same("data.task", has_classes ? "classification" : "regression", "its task");
  require_same("data.id", schema.id(), "the column that names the rows");
  require_same("data.decimal", std::string(1, schema.decimal()), "the decimal mark");
  require_kinds(schema, "data.numbers", mox::TableColumnKind::kNumber);
  require_kinds(schema, "data.categories", mox::TableColumnKind::kCategory);
  if (mox::is_given("data.ignored"))
    for (const std::string& name : mox::get_flag<Texts>("data.ignored"))
      if (column_of(schema, name) || name == schema.target() || name == schema.id())
        refuse("data.ignored", "column '" + name + "' is one that the model knows");
  require_missing_words(schema);
  if (mox::is_given("data.largest_vocabulary"))
    for (const mox::TableColumn& column : schema.columns())
      if (std::ssize(column.vocabulary) > mox::get_flag<int64_t>("data.largest_vocabulary"))
        refuse("data.largest_vocabulary", "column '" + std::string(column.name) + "' of the model has " +
                                              std::to_string(column.vocabulary.size()) + " categories");
}

void require_known_columns(const mox::TableSchema& schema, const mox::data::CsvTable& table) {
  const Texts ignored = mox::get_flag<Texts>("data.ignored");
  std::string unknown;
  for (const std::string_view name : table.columns())
    if (!column_of(schema, name) && name != schema.target() && name != schema.id() &&
        std::ranges::find(ignored, name) == ignored.end())
      unknown += (unknown.empty() ? "'" : ", '") + std::string(name) + "'";
  if (unknown.empty()) return;
  if (mox::is_given("data.ignored"))
    refuse("data.ignored",
           "the model does not know the column " + unknown + " either, which is not among them");
  if (mox::rank() != 0) return;
  mox::log_warning("'" + table.path() +
                   "': the model that this training goes on with does not know the column " + unknown +
                   ", which is passed over; to learn from it train anew, in another train_url and "
                   "without checkpoint_path");
}

}  // namespace tabular
