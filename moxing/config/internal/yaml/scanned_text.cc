#include "moxing/config/internal/yaml/scanned_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "runtime/base/error.h"

namespace mox::internal {
namespace {

// The parser takes what it is given; what it does not need yet counts as held.
constexpr size_t kMostAtOnce = 64;

constexpr int64_t kTokenBytes = 92;  // in the queue of the scanner
constexpr int64_t kQuarters = 4;

constexpr int64_t kDeepest = 500;  // so deep the parser reads

// How many tokens, in quarters, a character brings at most, with the value behind it: a comma may end a value
// of a map, and begin a key of the next.
int64_t tokens_of(char character) {
  switch (character) {
    case ',':
      return 16;
    case '[':
    case '{':
      return 11;  // with the place where a key may begin
    case ':':
    case ']':
    case '}':
    case '?':
      return 8;
    case '!':
    case '&':
    case '*':
    case '#':
    case '%':
    case '|':
    case '>':
      return 4;
    case '"':
    case '\'':
      return 2;
    default:
      return 0;
  }
}

}  // namespace

ScannedText::ScannedText(const std::string& path, const std::string& text, int64_t budget)
    : path_(path), text_(text), budget_(budget) {}

void ScannedText::release_to(const YAML::Mark& mark) {
  if (mark.is_null()) return;
  line_ = mark.line;
  const size_t begin = std::min(static_cast<size_t>(mark.pos), given_);
  // What follows is counted anew, which must not take longer than reading the text. Until then
  // too much counts.
  constexpr size_t kMostTimes = 64;
  if (begin <= released_ || given_ - begin > kMostTimes * (begin - released_)) return;
  released_ = begin;
  place_ = Place::kPlain;
  has_bracket_ = false;
  tokens_ = 0;
  for (size_t at = begin; at < given_; ++at) count(at);
}

int64_t ScannedText::held_bytes() const { return tokens_ * kTokenBytes / kQuarters; }

void ScannedText::take(int64_t bytes) {
  taken_ += bytes;
  check();
}

// Says what takes the most.
void ScannedText::check() const {
  const int64_t held = held_bytes();
  if (taken_ + held <= budget_) return;
  const std::string place = fmt::format("{}:{}", path_, line_ + 1);
  if (held < taken_)
    throw ConfigError(fmt::format(
        "{}: the file holds more values than a configuration of its size does; name a YAML file.", place));
  const auto begin = text_.begin() + static_cast<ptrdiff_t>(released_);
  const auto end = text_.begin() + static_cast<ptrdiff_t>(given_);
  const auto count_of = [&](char bracket) { return std::count(begin, end, bracket); };
  if (count_of('[') + count_of('{') - count_of(']') - count_of('}') > kDeepest)
    throw ConfigError(fmt::format(
        "{}: the file is not well-formed YAML: more than {} brackets are open at a time.", place, kDeepest));
  throw ConfigError(fmt::format(
      "{}: what is in brackets from here on is too long for where it stands: a list or section whose "
      "bracket begins a line has to be read as a whole. Put the '[' or '{{' behind its key, on the same "
      "line, or leave out the brackets and write one value a line.",
      place));
}

void ScannedText::count(size_t at) {
  const char character = text_[at];
  switch (place_) {
    case Place::kComment:
      if (character != '\n') return;
      place_ = Place::kPlain;
      break;
    case Place::kEscaped:
      place_ = Place::kDoubleQuoted;
      return;
    case Place::kDoubleQuoted:
      if (character == '\\') place_ = Place::kEscaped;
      if (character == '"') place_ = Place::kPlain;
      return;
    case Place::kSingleQuoted:
      if (character == '\'') place_ = Place::kBehindSingleQuote;
      return;
    case Place::kBehindSingleQuote:
      place_ = character == '\'' ? Place::kSingleQuoted : Place::kPlain;
      if (character == '\'') return;
      break;
    case Place::kUnknown:
      tokens_ += tokens_of(character);
      return;
    case Place::kPlain:
      break;
  }
  count_plain(at);
}

void ScannedText::count_plain(size_t at) {
  const char character = text_[at];
  tokens_ += tokens_of(character);
  switch (character) {
    case '\n':  // outside of brackets nothing is held beyond the end of a line
      if (depth_ == 0 && !has_bracket_) tokens_ = 0;
      break;
    case '#':
      if (at == 0 || std::string_view(" \t\n").find(text_[at - 1]) != std::string_view::npos)
        place_ = Place::kComment;
      break;
    case '[':
    case '{':
      has_bracket_ = true;
      break;
    // Where the parser has told of a text in quotes, these are quotes; elsewhere they may belong to a word.
    case '"':
      place_ = at == released_ ? Place::kDoubleQuoted : Place::kUnknown;
      break;
    case '\'':
      place_ = at == released_ ? Place::kSingleQuoted : Place::kUnknown;
      break;
    case '|':
    case '>':
      place_ = Place::kUnknown;
      break;
    default:
      break;
  }
}

void ScannedText::give(size_t end) {
  for (; given_ < end; ++given_) count(given_);
  check();
}

ScannedText::int_type ScannedText::underflow() {
  if (given_ == text_.size()) return traits_type::eof();
  // The parser asks for single characters at the beginning, for the encoding, and gives them back.
  char* const begin = const_cast<char*>(text_.data());
  setg(begin, begin + given_, begin + given_ + 1);
  give(given_ + 1);
  return traits_type::to_int_type(text_[given_ - 1]);
}

std::streamsize ScannedText::xsgetn(char* out, std::streamsize count) {
  std::streamsize copied = 0;
  for (; copied < count && gptr() < egptr(); ++copied, gbump(1)) out[copied] = *gptr();
  if (copied > 0) return copied;
  const size_t size = std::min({static_cast<size_t>(count), kMostAtOnce, text_.size() - given_});
  std::copy_n(text_.data() + given_, size, out);
  give(given_ + size);
  return static_cast<std::streamsize>(size);
}

}  // namespace mox::internal
