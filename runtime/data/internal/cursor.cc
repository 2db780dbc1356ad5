#include "runtime/data/internal/cursor.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
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

// What T holds: the library's own conversion cuts off what does not fit, and is undefined
// for large fractions.
template <typename T>
T whole_number(const Json& value) {
  const bool fits = value.is_number_unsigned()  ? std::in_range<T>(value.get<uint64_t>())
                    : value.is_number_integer() ? std::in_range<T>(value.get<int64_t>())
                                                : false;
  if (!fits) throw DataError(fmt::format("not a data cursor: {:.100} is no such number", value.dump()));
  return value.get<T>();
}

// Takes the members of a cursor out of its text, one after the other: values of the JSON library take far
// more memory than their text, and what a text that is no cursor may hold beside them is passed over.
class CursorReader final : public nlohmann::json_sax<Json> {
 public:
  explicit CursorReader(size_t bytes) : most_texts_(kAlwaysTexts + bytes / kBytesOfText) {}

  // All that was read. Throws DataError for what is missing.
  Cursor take() {
    for (const char* name : {"dataset", "position"})
      if (!lists_.contains(name)) fail_without(name);
    cursor_.seed = whole_number<uint64_t>(number("seed"));
    cursor_.batches = whole_number<int64_t>(number("batches"));
    cursor_.samples = whole_number<int64_t>(number("samples"));
    number("version");
    if (whole_number<uint64_t>(number("checksum")) != checksum(cursor_))
      throw DataError("the data cursor is damaged: its checksum does not match");
    return std::move(cursor_);
  }

  bool null() override { return scalar(nullptr); }
  bool boolean(bool value) override { return scalar(value); }
  bool number_integer(int64_t value) override { return scalar(value); }
  bool number_unsigned(uint64_t value) override { return scalar(value); }
  bool number_float(double value, const std::string&) override { return scalar(value); }
  bool string(std::string& text) override {
    std::vector<std::string>* texts = depth_ == 2 ? texts_of(member_) : nullptr;
    if (!texts) return scalar(std::move(text));
    if (texts->size() == most_texts_)
      throw DataError(fmt::format("not a data cursor: '{}' has more than {} texts", member_, most_texts_));
    texts->push_back(std::move(text));
    return true;
  }
  bool binary(Json::binary_t&) override { return true; }
  bool key(std::string& name) override {
    if (depth_ == 1) member_ = name == "position" || texts_of(name) || is_number(name) ? name : "";
    return true;
  }
  bool start_object(size_t) override {
    if (depth_ > 0) require_unknown();
    ++depth_;
    return true;
  }
  bool start_array(size_t) override {
    if (depth_ == 1 && is_list(member_)) {
      lists_.insert(member_);
      if (auto* texts = texts_of(member_))
        texts->clear();
      else
        cursor_.state.clear();
    } else {
      require_unknown();
    }
    ++depth_;
    return true;
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(size_t place, const std::string&, const nlohmann::detail::exception&) override {
    throw DataError(fmt::format("not a data cursor: it is no JSON at byte {}", place));
  }

 private:
  static constexpr size_t kAlwaysTexts = 512;
  static constexpr size_t kBytesOfText = 4;  // the shortest stage: a letter, its quotes and a comma

  static bool is_number(std::string_view name) {
    return name == "version" || name == "seed" || name == "batches" || name == "samples" ||
           name == "checksum";
  }
  std::vector<std::string>* texts_of(std::string_view name) {
    return name == "dataset" ? &cursor_.stages : name == "contents" ? &cursor_.contents : nullptr;
  }
  bool is_list(std::string_view name) { return name == "position" || texts_of(name); }

  [[noreturn]] static void fail_without(std::string_view name) {
    throw DataError(fmt::format("not a data cursor: it has no '{}'", name));
  }
  const Json& number(const std::string& name) const {
    const auto found = numbers_.find(name);
    if (found == numbers_.end()) fail_without(name);
    return found->second;
  }
  void require_unknown() const {
    if (depth_ == 0) throw DataError("not a data cursor: it is no object");
    if (!member_.empty())
      throw DataError(fmt::format("not a data cursor: '{}' is not what it is in one", member_));
  }
  bool scalar(Json value) {
    if (depth_ == 2 && member_ == "position") {
      cursor_.state.push_back(whole_number<uint64_t>(value));
    } else if (depth_ == 1 && is_number(member_)) {
      if (member_ == "version" && whole_number<int>(value) != kVersion)
        throw DataError(fmt::format("a data cursor of version {}, this program reads version {}",
                                    value.dump(), kVersion));
      numbers_[member_] = std::move(value);
    } else {
      require_unknown();
    }
    return true;
  }
  bool close() {
    --depth_;
    return true;
  }

  const size_t most_texts_;
  Cursor cursor_;
  std::map<std::string, Json> numbers_;
  std::set<std::string> lists_;
  int depth_ = 0;
  std::string member_;  // of the cursor, which the reader is in; "" for others
};

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
  CursorReader reader(text.size());
  Json::sax_parse(text, &reader);
  return reader.take();
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
