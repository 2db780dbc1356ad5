// Regular expressions over the names of variables, as options give them: "^resnet_v1_18/block1/", "/bias$".
#pragma once

#include <regex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mox {

// ECMAScript's expressions. One matches a name if it is found anywhere in it; ^ and $ are its ends.
class NamePatterns {
 public:
  NamePatterns() = default;
  // Throws InvalidArgument, naming the option, the pattern and what is wrong with it, for one that is empty
  // or no regular expression.
  NamePatterns(std::string option, const std::vector<std::string>& patterns);

  bool empty() const { return patterns_.empty(); }
  const std::string& option() const { return option_; }

  // Whether one of the patterns matches. Throws DataError for a name of more than 4,096 bytes.
  bool match(std::string_view name) const;

  // Throws InvalidArgument unless each pattern matches one of `names`: it would do nothing, where something
  // was wanted. The message names the pattern and some of the names, which are those of
  // `whose` ("the model").
  void require_used(std::span<const std::string> names, std::string_view whose) const;

 private:
  struct Pattern {
    std::string text;
    std::regex expression;
  };
  std::string option_;
  std::vector<Pattern> patterns_;
};

// Replacements in names: each pair is a pattern and what takes the place of what it matches ($1: its first
// group), one pair after the other.
class NameReplacements {
 public:
  using Pairs = std::vector<std::pair<std::string, std::string>>;

  NameReplacements() = default;
  // Throws what NamePatterns throws.
  NameReplacements(std::string option, const Pairs& pairs);

  bool empty() const { return pairs_.empty(); }
  // What each of `names` becomes. Throws InvalidArgument if a pair changes none of them, or if two become
  // the same.
  std::vector<std::string> apply(std::span<const std::string> names, std::string_view whose) const;

 private:
  struct Pair {
    std::string text, replacement;
    std::regex expression;
  };
  std::string option_;
  std::vector<Pair> pairs_;
};

// Pairs as text, "PATTERN -> REPLACEMENT", and back. Throws InvalidArgument, naming the option, for a text
// without an arrow.
NameReplacements::Pairs parse_replacements(std::string_view option, const std::vector<std::string>& texts);
std::vector<std::string> replacement_texts(const NameReplacements::Pairs& pairs);

}  // namespace mox
