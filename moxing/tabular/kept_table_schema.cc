#include "moxing/tabular/kept_table_schema.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "moxing/checkpoint/checkpoint.h"
#include "moxing/job/distributed.h"
#include "moxing/json/parse_json.h"
#include "runtime/base/error.h"
#include "runtime/base/nearest_name.h"

namespace mox {
namespace {

constexpr const char* kSchemaHook = "table_schema";

// The first thing in which they differ, for a person.
std::string difference(const TableSchema& before, const TableSchema& now) {
  if (before.task() != now.task() || before.target() != now.target())
    return fmt::format("it learnt '{}', and is to learn '{}' now", before.target(), now.target());
  if (before.class_names() != now.class_names())
    return fmt::format("its classes were {}, and are {} now", internal::first_names(before.class_names()),
                       internal::first_names(now.class_names()));
  const auto old_names = before.feature_names(), new_names = now.feature_names();
  if (old_names != new_names)
    return fmt::format("its {} features were {}, and the {} now are {}", old_names.size(),
                       internal::first_names(old_names), new_names.size(), internal::first_names(new_names));
  if (before.training_part() != now.training_part())
    return fmt::format("it learnt from {}, and is to learn from {} now", before.training_part(),
                       now.training_part());
  for (size_t i = 0; i < before.columns().size(); ++i)
    if (before.columns()[i] != now.columns()[i])
      return fmt::format("'{}' had a mean of {}, and has one of {} now", before.columns()[i].name,
                         before.columns()[i].moments.mean, now.columns()[i].moments.mean);
  return "its target was read otherwise";
}

class TableSchemaHook : public TrainingHook {
 public:
  explicit TableSchemaHook(TableSchema schema) : schema_(std::move(schema)), text_(schema_.to_json()) {}

  std::string name() const override { return kSchemaHook; }
  std::string save_state() const override { return text_; }
  void restore_state(const std::string& text) override {
    const TableSchema before = TableSchema::from_json(text, "the checkpoint");
    if (before == schema_) return;
    throw FailedPrecondition(fmt::format(
        "the run in log_dir was trained on a table that is read otherwise: {}. Take the schema of its "
        "checkpoint (kept_table_schema), or begin anew in another log_dir",
        difference(before, schema_)));
  }

 private:
  TableSchema schema_;
  std::string text_;
};

TableSchema schema_in(const Checkpoint& checkpoint, const std::string& path) {
  std::string text;
  try {
    text = parse_json(checkpoint.state.at("hooks")).at(kSchemaHook).get<std::string>();
  } catch (const std::exception&) {
    throw NotFound(
        fmt::format("the checkpoint '{}' holds no schema of a table: it was not trained on one", path));
  }
  return TableSchema::from_json(text, path);
}

std::string schema_text(ModeKeys mode, const std::string& log_dir, const std::string& checkpoint_path) {
  const bool is_named = mode != ModeKeys::TRAIN && !checkpoint_path.empty();
  if (!log_dir.empty() && !is_named) {
    std::string path;
    if (const auto latest = load_latest_checkpoint(log_dir, &path)) return schema_in(*latest, path).to_json();
  }
  if (!checkpoint_path.empty()) return read_table_schema(checkpoint_path).to_json();
  if (mode == ModeKeys::TRAIN) return "";
  throw ConfigError(fmt::format(
      "run_mode {} needs a trained model, but log_dir ('{}') holds no checkpoint and checkpoint_path "
      "is not set; train first, or name a checkpoint with --checkpoint_path",
      to_string(mode), log_dir));
}

}  // namespace

std::shared_ptr<Hook> table_schema_hook(TableSchema schema) {
  return std::make_shared<TableSchemaHook>(std::move(schema));
}

TableSchema read_table_schema(const std::string& checkpoint) {
  std::string path;
  const Checkpoint loaded = load_checkpoint(checkpoint, &path);
  return schema_in(loaded, path);
}

std::optional<TableSchema> kept_table_schema(ModeKeys mode, const std::string& log_dir,
                                             const std::string& checkpoint_path) {
  const std::string text = broadcast(rank() == 0 ? schema_text(mode, log_dir, checkpoint_path) : "");
  if (text.empty()) return std::nullopt;
  return TableSchema::from_json(text, "the checkpoint of rank 0");
}

}  // namespace mox
