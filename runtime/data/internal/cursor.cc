#include "runtime/data/internal/cursor.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/random.h"

namespace mox::data::internal {
namespace {

using Json = nlohmann::ordered_json;
constexpr int kVersion = 1;

uint64_t checksum(const Cursor& cursor) {
  uint64_t hash = mix_hash(cursor.seed, cursor.batches);
  hash = mix_hash(hash, cursor.samples);
  for (const auto& stage : cursor.stages) hash = mix_hash(hash, stable_hash(stage));
  for (uint64_t value : cursor.state) hash = mix_hash(hash, value);
  for (const auto& content : cursor.contents) hash = mix_hash(hash, stable_hash(content));
  return hash;
}

void check_contents(const std::vector<std::string>& before, const std::vector<std::string>& now) {
  if (before.size() != now.size()) return;  // of a program that took other samples
  size_t different = 0;
  std::string first;
  for (size_t i = 0; i < now.size(); ++i) {
    if (before[i] == now[i]) continue;
    if (different++ == 0) first = fmt::format("'{}' was '{}'", now[i], before[i]);
  }
  if (different == 0) return;
  const std::string text = fmt::format(
      "the data are others than when the run was saved, under the same names: of {} samples that were looked "
      "at {} differ; the first: {}",
      now.size(), different, first);
  if (2 * different >= now.size()) throw FailedPrecondition(text);
  log_warning(text + ". The run goes on with the data as they are now");
}

// What T holds: the library's own conversion cuts off what does not fit, and is undefined for large
// fractions.
template <typename T>
T whole_number(const Json& value) {
  const bool fits = value.is_number_unsigned()  ? std::in_range<T>(value.get<uint64_t>())
                    : value.is_number_integer() ? std::in_range<T>(value.get<int64_t>())
                                                : false;
  if (!fits) throw DataError(fmt::format("not a data cursor: {} is no such number", value.dump()));
  return value.get<T>();
}

}  // namespace

std::string to_json(const Cursor& cursor) {
  return Json{{"version", kVersion},         {"dataset", cursor.stages},    {"seed", cursor.seed},
              {"batches", cursor.batches},   {"samples", cursor.samples},   {"position", cursor.state},
              {"contents", cursor.contents}, {"checksum", checksum(cursor)}}
      .dump();
}

std::string without_precision(std::string stage) {
  constexpr std::string_view kNarrow = "bfloat16[", kWide = "float32[";
  for (size_t at = 0; (at = stage.find(kNarrow, at)) != std::string::npos;)
    stage.replace(at, kNarrow.size(), kWide);
  return stage;
}

Cursor cursor_from_json(const std::string& text) {
  Cursor cursor;
  try {
    const Json json = Json::parse(text);
    if (const int version = whole_number<int>(json.at("version")); version != kVersion)
      throw DataError(
          fmt::format("a data cursor of version {}, this program reads version {}", version, kVersion));
    cursor.stages = json.at("dataset").get<std::vector<std::string>>();
    cursor.seed = whole_number<uint64_t>(json.at("seed"));
    cursor.batches = whole_number<int64_t>(json.at("batches"));
    cursor.samples = whole_number<int64_t>(json.at("samples"));
    for (const Json& value : json.at("position")) cursor.state.push_back(whole_number<uint64_t>(value));
    if (json.contains("contents")) cursor.contents = json["contents"].get<std::vector<std::string>>();
    if (whole_number<uint64_t>(json.at("checksum")) != checksum(cursor))
      throw DataError("the data cursor is damaged: its checksum does not match");
  } catch (const Json::exception& error) {
    throw DataError(fmt::format("not a data cursor: {}", error.what()));
  }
  return cursor;
}

void check_cursor(const Cursor& cursor, const Cursor& now) {
  const uint64_t seed = now.seed;
  const std::vector<std::string>& stages = now.stages;
  if (cursor.seed != seed)
    throw FailedPrecondition(fmt::format(
        "the data cursor belongs to a run with seed {}, this one has seed {}: the order would change",
        cursor.seed, seed));
  const auto stage = [](const std::vector<std::string>& list, size_t i) {
    return i < list.size() ? "'" + list[i] + "'" : std::string("nothing");
  };
  for (size_t i = 0; i < std::max(cursor.stages.size(), stages.size()); ++i)
    if (without_precision(stage(cursor.stages, i)) != without_precision(stage(stages, i)))
      throw FailedPrecondition(
          fmt::format("the data cursor belongs to another data set: operation {} was {} and is now {}", i + 1,
                      stage(cursor.stages, i), stage(stages, i)));
  // In another precision the samples of a source are other bytes.
  if (cursor.stages == stages) check_contents(cursor.contents, now.contents);
}

}  // namespace mox::data::internal
