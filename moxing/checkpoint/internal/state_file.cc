#include "moxing/checkpoint/internal/state_file.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "moxing/checkpoint/internal/checksum_text.h"
#include "moxing/checkpoint/internal/json_layout.h"
#include "moxing/json/bounded_json.h"
#include "moxing/json/parse_json.h"
#include "moxing/json/whole_number.h"
#include "runtime/base/error.h"

namespace mox::internal {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr size_t kMostEntries = 4096;  // of the state: one for each part of a run that keeps something
constexpr int kMaxDepth = 100;         // the JSON library writes nested values recursively
// The file begins with these, the checksum's digits between them; the checksum covers all that follows.
constexpr std::string_view kBeforeChecksum = "{\n  \"crc32\": \"";
constexpr std::string_view kBehindChecksum = "\",\n";
// Before the last member; nowhere else does a line begin so.
constexpr std::string_view kBeforeState = "\n  \"state\": ";

// What stands before the state becomes values, of some eighty characters for a file's: it takes less than
// this many times its size.
constexpr size_t kMostTimes = 12;

// Accepts JSON whose every value survives being read and written again.
class LosslessJson : public nlohmann::json_sax<Json> {
 public:
  explicit LosslessJson(int max_depth) : max_depth_(max_depth) {}
  std::string error;

  bool number_float(double, const std::string& text) override {
    // The decimal sign in it may be any (parse_json.h).
    if (text.find_first_not_of("-0123456789") != text.npos) return true;
    return fail(fmt::format("the whole number {} does not fit 64 bits", text));
  }
  bool start_object(size_t) override { return deeper(); }
  bool start_array(size_t) override { return deeper(); }
  bool end_object() override { return --depth_ >= 0; }
  bool end_array() override { return --depth_ >= 0; }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override {
    return fail(fmt::format("it is not valid JSON at byte {}", position));
  }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(int64_t) override { return true; }
  bool number_unsigned(uint64_t) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool key(std::string&) override { return true; }

 private:
  bool deeper() {
    return ++depth_ <= max_depth_ || fail(fmt::format("it is nested deeper than {} levels", max_depth_));
  }
  bool fail(std::string text) {
    error = std::move(text);
    return false;
  }
  const int max_depth_;
  int depth_ = 0;
};

void require_lossless(const std::string& key, const std::string& text) {
  LosslessJson checker(kMaxDepth);
  // The JSON parser takes a zero byte for the end of its input.
  if (text.find('\0') != text.npos)
    checker.error = "it has a zero byte";
  else
    Json::sax_parse(text, &checker);
  if (!checker.error.empty())
    throw InvalidArgument(fmt::format("the state '{}' cannot be saved: {}", key, checker.error));
}

template <typename T>
T number_in(const Json& object, const char* key, const std::string& path) {
  try {
    return whole_number<T>(object.at(key), 0, static_cast<T>(kLargestCount));
  } catch (const DataError& error) {
    throw DataError(fmt::format("'{}' cannot be read: {}: {}", path, key, error.what()));
  }
}

}  // namespace

std::string encode_state_file(const StateFile& state) {
  Json body;
  body["format"] = "moxing checkpoint";
  body["version"] = kVersion;
  body["global_step"] = state.global_step;
  body["files"] = Json::object();
  for (const auto& [name, stamp] : state.files)
    body["files"][name] = {{"bytes", stamp.bytes}, {"header_crc32", checksum_text(stamp.header_crc32)}};
  std::string sealed = body.dump(2).substr(2);  // without "{\n"
  sealed.resize(sealed.size() - 2);             // without "\n}"
  std::string members;
  if (state.state.size() > kMostEntries)
    throw InvalidArgument(fmt::format("the state of a checkpoint has {} entries; at most {} can be saved",
                                      state.state.size(), kMostEntries));
  for (const auto& [key, value] : state.state) {
    require_lossless(key, value);
    try {
      members += (members.empty() ? "" : ",") + Json(key).dump() + ':' + value;
    } catch (const nlohmann::json::exception&) {
      throw InvalidArgument("the state of a checkpoint has a key that is not UTF-8 text");
    }
  }
  sealed += fmt::format(",{}{}\n}}\n", kBeforeState, indented('{' + members + '}', 2));
  return fmt::format("{}{}{}{}", kBeforeChecksum, checksum_text(crc32_of(sealed)), kBehindChecksum, sealed);
}

StateFile decode_state_file(std::string_view text, const std::string& path) {
  constexpr size_t kDigitsEnd = kBeforeChecksum.size() + kChecksumDigits;
  constexpr size_t kSealedBegin = kDigitsEnd + kBehindChecksum.size();
  if (!text.starts_with(kBeforeChecksum) || text.size() < kSealedBegin ||
      text.substr(kDigitsEnd, kBehindChecksum.size()) != kBehindChecksum)
    throw DataError(fmt::format("'{}' is damaged: it does not begin with its checksum", path));
  const std::string_view digits = text.substr(kBeforeChecksum.size(), kChecksumDigits);
  const std::string_view sealed = text.substr(kSealedBegin);
  if (parse_checksum(digits) != crc32_of(sealed))
    throw DataError(fmt::format("'{}' is damaged: its checksum is {}, but it says '{}'", path,
                                checksum_text(crc32_of(sealed)), digits));
  const std::string json = "{" + std::string(sealed);
  require_bounded_json(json, path);
  LosslessJson checker(kMaxDepth + 2);
  if (!Json::sax_parse(json, &checker))
    throw DataError(fmt::format("'{}' cannot be read: {}", path, checker.error));
  try {
    const size_t state_begin = json.find(kBeforeState);
    const bool has_state = state_begin != json.npos;
    // Without the comma before the state, which is kept as it is written.
    const std::string before_state = has_state ? json.substr(0, state_begin - 1) + "}" : json;
    const Json body = parse_json<Json>(before_state, path, kMostTimes);
    if (body.at("format") != "moxing checkpoint" || body.at("version") != kVersion)
      throw DataError(
          fmt::format("'{}' is of format {} version {}; this program reads version {} of \"moxing "
                      "checkpoint\"",
                      path, body.at("format").dump(), body.at("version").dump(), kVersion));
    StateFile state;
    state.global_step = number_in<int64_t>(body, "global_step", path);
    for (const auto& [name, file] : body.at("files").items()) {
      const auto crc32 = parse_checksum(file.at("header_crc32").get<std::string>());
      if (!crc32) throw DataError(fmt::format("'{}': the checksum of '{}' is not one", path, name));
      state.files[name] = {number_in<uint64_t>(file, "bytes", path), *crc32};
    }
    const std::string values =
        has_state ? compact(std::string_view(json).substr(state_begin + kBeforeState.size())) : "";
    if (!values.starts_with('{')) throw DataError(fmt::format("'{}' cannot be read: it has no state", path));
    const auto members = members_of(values);
    if (members.size() > kMostEntries)
      throw DataError(fmt::format("'{}' has {} entries in its state; at most {} are read", path,
                                  members.size(), kMostEntries));
    for (const auto& [key, value] : members)
      state.state[parse_json<Json>(key, path).get<std::string>()] = value;
    return state;
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("'{}' cannot be read: {}", path, error.what()));
  }
}

}  // namespace mox::internal
