#include "moxing/json/bounded_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "moxing/json/many_blanks.h"
#include "runtime/base/error.h"

namespace mox {
namespace {

constexpr size_t kAllowedTimes = 16, kAllowedBeside = 1 << 20;
constexpr int kMostDepth = 1000;

// What a value takes in nlohmann::json: 16 bytes in a list, and more while the list grows and is copied from;
// a list or an object of its own; the node of a key. With what the allocator adds to each block.
constexpr size_t kValue = 64, kContainer = 64, kKey = 96, kText = 48;

class MemoryOfJson : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit MemoryOfJson(size_t allowed) : allowed_(allowed) {}
  bool is_exceeded() const { return bytes_ > allowed_; }
  bool is_too_deep() const { return depth_ > kMostDepth; }

  bool null() override { return add(kValue); }
  bool boolean(bool) override { return add(kValue); }
  bool number_integer(int64_t) override { return add(kValue); }
  bool number_unsigned(uint64_t) override { return add(kValue); }
  bool number_float(double, const std::string&) override { return add(kValue); }
  bool string(std::string& text) override { return add(kValue + kText + text.size()); }
  bool binary(binary_t&) override { return add(kValue); }
  bool start_object(size_t) override { return open(); }
  bool key(std::string& text) override { return add(kKey + text.size()); }
  bool end_object() override { return close(); }
  bool start_array(size_t) override { return open(); }
  bool end_array() override { return close(); }
  bool parse_error(size_t place, const std::string&, const nlohmann::detail::exception&) override {
    mistake_ = place;
    return false;
  }
  size_t mistake() const { return mistake_; }  // which byte is no JSON, counted from 1

 private:
  bool add(size_t bytes) {
    bytes_ += bytes;
    return !is_exceeded();
  }
  bool open() {
    ++depth_;
    return add(kValue + kContainer) && !is_too_deep();
  }
  bool close() {
    --depth_;
    return true;
  }
  const size_t allowed_;
  size_t bytes_ = 0, mistake_ = 0;
  int depth_ = 0;
};

bool is_blank(char letter) { return letter == ' ' || letter == '\n' || letter == '\t' || letter == '\r'; }

// Calls `take` for each character that is no blank between values; `blank` for the others.
template <typename Take, typename Blank>
void for_each_letter(std::string_view text, Take&& take, Blank&& blank) {
  bool in_text = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!in_text && is_blank(text[i])) {
      blank();
      continue;
    }
    if (text[i] == '"') in_text = !in_text;
    take(text[i]);
    if (in_text && text[i] == '\\' && i + 1 < text.size()) take(text[++i]);
  }
}

// With one blank for each run of them, and none at the begin: without any, `tru e` would become a value.
std::string with_single_blanks(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  bool is_run = true;
  for_each_letter(
      text,
      [&](char letter) {
        result += letter;
        is_run = false;
      },
      [&] {
        if (!is_run) result += ' ';
        is_run = true;
      });
  return result;
}

// Where in `text` the byte of with_single_blanks is that is number `wanted`, counted from 1.
std::string place_of(size_t wanted, std::string_view text) {
  size_t place = 0, kept = 0, line = 1, column = 1;
  bool is_run = true, is_found = false;
  const auto pass = [&](bool is_kept) {
    if (is_found || (is_kept && ++kept >= wanted)) {
      is_found = true;
      return;
    }
    ++column;
    if (text[place++] == '\n') ++line, column = 1;
  };
  for_each_letter(
      text,
      [&](char) {
        pass(true);
        is_run = false;
      },
      [&] {
        pass(!is_run);
        is_run = true;
      });
  return is_found ? fmt::format("line {}, column {}", line, column) : "its end";
}

void require_within(size_t allowed, std::string_view text, const std::string& name) {
  MemoryOfJson memory(allowed);
  const bool is_blown_up = has_many_blanks(text);
  const bool is_json = is_blown_up ? nlohmann::json::sax_parse(with_single_blanks(text), &memory)
                                   : nlohmann::json::sax_parse(text, &memory);
  if (memory.is_exceeded())
    throw DataError(fmt::format(
        "'{}' is not read: the values of its {} bytes of JSON would take more than {} bytes of memory, which "
        "no file of this kind does",
        name, text.size(), allowed));
  if (memory.is_too_deep())
    throw DataError(
        fmt::format("'{}' is not read: its JSON is nested more than {} deep, which no file of this kind is",
                    name, kMostDepth));
  if (is_blown_up && !is_json)
    throw DataError(fmt::format(
        "'{}' is no JSON: the mistake is at {}, in a text with thousands of blanks and ends of lines", name,
        place_of(memory.mistake(), text)));
}

}  // namespace

bool has_many_blanks(std::string_view text) {
  constexpr size_t kMany = 4096;
  size_t since = 0, most = 0;
  for_each_letter(
      text,
      [&](char letter) {
        if (letter == '"' || (letter >= '0' && letter <= '9')) since = 0;
      },
      [&] { most = std::max(most, ++since); });
  return most > kMany;
}

void require_bounded_json(std::string_view text, const std::string& name) {
  require_within(kAllowedTimes * text.size() + kAllowedBeside, text, name);
}

void require_bounded_json(std::string_view text, const std::string& name, size_t times) {
  constexpr size_t kSmall = 16 << 10;
  require_within(times * std::max(text.size(), kSmall), text, name);
}

}  // namespace mox
