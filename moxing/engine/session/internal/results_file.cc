#include "moxing/engine/session/internal/results_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "moxing/file/file.h"
#include "moxing/hooks/metric_names.h"
#include "moxing/json/parse_json.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"
#include "runtime/base/opened_file.h"

namespace mox::internal {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const metrics::Table& table) {
  Json rows = Json::object();
  for (const auto& [name, numbers] : table.rows) rows[name] = numbers;
  return {{"columns", table.columns}, {"rows", std::move(rows)}};
}

Json json_of(const PassResults& results) {
  Json entry = {{"checkpoint", std::filesystem::path(results.checkpoint).filename().string()},
                {"global_step", results.global_step},
                {"samples", results.samples},
                {"seconds", results.seconds}};
  if (results.mode == ModeKeys::EVAL) {
    entry["metrics"] = Json::object();
    for (const auto& [name, value] : results.evaluation.numbers) entry["metrics"][name] = value;
    if (!results.evaluation.tables.empty()) entry["tables"] = Json::object();
    for (const auto& [name, table] : results.evaluation.tables) entry["tables"][name] = json_of(table);
  } else if (!results.predictions.empty()) {
    entry["predictions"] = results.predictions;
  }
  return entry;
}

// `path` may be a URL.
Json known_results(const std::string& path) {
  try {
    const std::string text = file::is_remote(path) ? file::read(path) : read_file(path);
    require_bounded_json(text, path);
    Json known = parse_json_or_discard<Json>(text);
    if (known.is_object()) return known;
  } catch (const NotFound&) {
  }
  return Json::object();
}

std::string line_of(const PassResults& results) {
  Json line = {{kStepField, results.global_step}};
  if (results.mode == ModeKeys::EVAL) {
    line[kEvaluationField] = true;
    line[kSamplesField] = results.samples;
    for (const auto& [name, value] : results.evaluation.numbers) line[name] = value;
  } else {
    line["prediction"] = true;
    line[kSamplesField] = results.samples;
  }
  return line.dump() + '\n';
}

std::string results_with(const std::string& path, const PassResults& results) {
  Json all = known_results(path);
  all[std::string(to_string(results.mode))] = json_of(results);
  return all.dump(2) + '\n';
}

}  // namespace

void keep_results(const PassResults& results) {
  std::filesystem::path checkpoint(results.checkpoint);
  if (!checkpoint.has_filename()) checkpoint = checkpoint.parent_path();
  const std::string directory =
      checkpoint.has_parent_path() ? checkpoint.parent_path().string() : std::string(".");
  try {
    write_file_atomically(directory + "/results.json", results_with(directory + "/results.json", results));
    const std::string metrics = directory + "/metrics.jsonl";
    append_to(open_kept_file(metrics), metrics, line_of(results));
  } catch (const Error& error) {
    log_warning(fmt::format("the results are not kept beside the checkpoint: {}", error.what()));
  }
  if (results.stored_checkpoint.empty()) return;
  const std::string stored = results.stored_checkpoint.substr(0, results.stored_checkpoint.rfind('/'));
  try {
    // What others have put there since it was copied stays.
    file::write(stored + "/results.json", results_with(stored + "/results.json", results));
    file::append(stored + "/metrics.jsonl", line_of(results));
  } catch (const Error& error) {
    log_warning(fmt::format("the results are not kept in '{}': {}\nthey are in '{}'", stored, error.what(),
                            directory));
  }
}

}  // namespace mox::internal
