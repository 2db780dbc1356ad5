// The text that yaml-cpp reads, which knows how much memory the parser may hold at each point. Its scanner
// keeps the tokens from a '[' or '{' that may begin a key (one that begins a line) up to its end, some
// hundred bytes each, before anything of them is seen: `[1,1,1,...` takes 140 times its size. So the text
// ends with an error where it would be too much.
#pragma once

#include <yaml-cpp/mark.h>

#include <cstdint>
#include <streambuf>
#include <string>

namespace mox::internal {

class ScannedText : public std::streambuf {
 public:
  // `budget`: how many bytes the parser, and what is made of its events, may take. `path` and `text` must
  // outlive this object.
  ScannedText(const std::string& path, const std::string& text, int64_t budget);

  // The parser has told of what begins at `mark`; what is before is held no more.
  void release_to(const YAML::Mark& mark);
  // It has gone into a list or a map in brackets, or out of one.
  void enter_brackets() { ++depth_; }
  void leave_brackets() { --depth_; }
  bool is_in_brackets() const { return depth_ > 0; }
  // So many bytes of the budget are taken for as long as the text is read. Throws ConfigError where that is
  // too much.
  void take(int64_t bytes);

 protected:
  int_type underflow() override;
  std::streamsize xsgetn(char* out, std::streamsize count) override;

 private:
  // What is known of a point: whether it may be within quotes, or within a text behind '|' or '>', where a
  // '#' begins no comment.
  enum class Place { kPlain, kComment, kDoubleQuoted, kEscaped, kSingleQuoted, kBehindSingleQuote, kUnknown };

  void give(size_t end);
  void count(size_t at);
  void count_plain(size_t at);
  int64_t held_bytes() const;
  void check() const;

  const std::string& path_;
  const std::string& text_;
  const int64_t budget_;
  int64_t taken_ = 0;
  int depth_ = 0;
  int line_ = 0;                 // of what was told last
  size_t given_ = 0;             // up to where the parser has the text
  size_t released_ = 0;          // from where on it may hold tokens
  Place place_ = Place::kPlain;  // of the end of what is given
  bool has_bracket_ = false;     // one has been opened since
  int64_t tokens_ = 0;           // how many it may hold, in quarters
};

}  // namespace mox::internal
