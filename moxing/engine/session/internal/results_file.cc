#include "moxing/engine/session/internal/results_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "moxing/file/file.h"
#include "moxing/hooks/metric_names.h"
#include "moxing/json/append_member.h"
#include "moxing/json/parse_json.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"
#include "runtime/base/opened_file.h"

namespace mox::internal {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Of rows of one name, as lists of labels have them, each is kept: "crane", "crane (2)".
OrderedJson json_of(const metrics::Table& table) {
  OrderedJson rows = OrderedJson::object();
  std::unordered_set<std::string> titles;
  std::unordered_map<std::string, int> numbers_so_far;
  for (const auto& [name, numbers] : table.rows) {
    std::string title = name;
    for (int& number = numbers_so_far.try_emplace(name, 1).first->second; !titles.insert(title).second;)
      title = fmt::format("{} ({})", name, ++number);
    append_member(rows, title, numbers);
  }
  return {{"columns", table.columns}, {"rows", std::move(rows)}};
}

OrderedJson json_of(const PassResults& results) {
  OrderedJson entry = {{"checkpoint", std::filesystem::path(results.checkpoint).filename().string()},
                       {"global_step", results.global_step},
                       {"samples", results.samples},
                       {"seconds", results.seconds}};
  if (results.mode == ModeKeys::EVAL) {
    OrderedJson& metrics = entry["metrics"] = OrderedJson::object();
    for (const auto& [name, value] : results.evaluation.numbers) append_member(metrics, name, value);
    if (!results.evaluation.tables.empty()) entry["tables"] = OrderedJson::object();
    for (const auto& [name, table] : results.evaluation.tables) entry["tables"][name] = json_of(table);
  } else if (!results.predictions.empty()) {
    entry["predictions"] = results.predictions;
  }
  return entry;
}

// Deeper ones would be written with so many blanks before each value, and far more memory.
constexpr size_t kMostDepth = 8;  // of a table there are six
constexpr size_t kMostTimes = 6;

bool is_deeper(const OrderedJson& json, size_t depth) {
  if (!json.is_structured()) return false;
  return depth == 0 ||
         std::ranges::any_of(json, [&](const OrderedJson& inner) { return is_deeper(inner, depth - 1); });
}

OrderedJson known_results(const std::string& text, const std::string& path) {
  require_bounded_json(text, path, kMostTimes);
  OrderedJson known = parse_json_or_discard<OrderedJson>(text, path);
  if (!known.is_object()) return OrderedJson::object();
  if (is_deeper(known, kMostDepth))
    throw DataError(fmt::format(
        "'{}' is nested more than {} deep: no results that a run has kept. Take it away", path, kMostDepth));
  return known;
}

// "" if there is none. `path` may be a URL.
std::string text_at(const std::string& path) {
  try {
    return file::is_remote(path) ? file::read(path) : read_open_file(open_file_to_go_on_with(path), path);
  } catch (const NotFound&) {
    return "";
  }
}

std::string line_of(const PassResults& results) {
  OrderedJson line = {{kStepField, results.global_step}};
  if (results.mode == ModeKeys::EVAL) {
    line[kEvaluationField] = true;
    line[kSamplesField] = results.samples;
    for (const auto& [name, value] : results.evaluation.numbers) append_member(line, name, value);
  } else {
    line["prediction"] = true;
    line[kSamplesField] = results.samples;
  }
  return line.dump() + '\n';
}

}  // namespace

std::string results_with(const std::string& before, const std::string& path, const PassResults& results) {
  OrderedJson all = known_results(before, path);
  all[std::string(to_string(results.mode))] = json_of(results);
  return all.dump(2) + '\n';
}

void keep_results(const PassResults& results) {
  std::filesystem::path checkpoint(results.checkpoint);
  if (!checkpoint.has_filename()) checkpoint = checkpoint.parent_path();
  const std::string directory =
      checkpoint.has_parent_path() ? checkpoint.parent_path().string() : std::string(".");
  try {
    const std::string kept = directory + "/results.json";
    write_file_atomically(kept, results_with(text_at(kept), kept, results));
    const std::string metrics = directory + "/metrics.jsonl";
    append_to(open_kept_file(metrics), metrics, line_of(results));
  } catch (const Error& error) {
    log_warning(fmt::format("the results are not kept beside the checkpoint: {}", error.what()));
  }
  if (results.stored_checkpoint.empty()) return;
  const std::string stored = results.stored_checkpoint.substr(0, results.stored_checkpoint.rfind('/'));
  try {
    // What others have put there since it was copied stays.
    const std::string kept = stored + "/results.json";
    file::write(kept, results_with(text_at(kept), kept, results));
    file::append(stored + "/metrics.jsonl", line_of(results));
  } catch (const Error& error) {
    log_warning(fmt::format("the results are not kept in '{}': {}\nthey are in '{}'", stored, error.what(),
                            directory));
  }
}

}  // namespace mox::internal
