// Text to typed values of options, and back.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "moxing/config/options.h"

namespace mox::internal {

// A value as it was written in a YAML file or on the command line.
struct WrittenValue {
  enum class Kind { kScalar, kList, kMap, kNothing };
  Kind kind = Kind::kScalar;
  std::string text{};                    // kScalar
  bool quoted = false;                   // kScalar: in quotes, hence text even if it looks like a number
  size_t size = 0;                       // kList: how many elements it has
  std::vector<WrittenValue> elements{};  // kList; of a kMap inside of a list its "KEY=VALUE" texts
  std::string where{};                   // "run.yaml:12" or "command line"
};

// The value that `written` gives to `option`. Throws ConfigError, which names the place, the option, what is
// expected and what is there.
OptionValue parse_value(const Option& option, const WrittenValue& written);

// The same of a list whose elements are not kept, since they take more memory than the file that they come
// from: each call of `next_element` makes the next of its written.size.
OptionValue parse_value(const Option& option, const WrittenValue& written,
                        const std::function<WrittenValue()>& next_element);

bool is_list(OptionType type);

// What `text`, as the command line spells it, gives to `option`. A list is made of elements with commas
// between them, or the same in brackets; "" is the empty list.
WrittenValue written_text(const Option& option, const std::string& text, const std::string& where);

// Throws ConfigError unless `value` is inside of the option's range and allowed values; `where` is
// for the message.
void check_value(const Option& option, const OptionValue& value, const std::string& where);

// Whether a value of this alternative may be stored in an option of that type.
bool holds_type(OptionType type, const OptionValue& value);

// `value` in the alternative that `type` stores: an integer given for a number becomes
// one; otherwise unchanged.
OptionValue to_stored(OptionType type, OptionValue value);

OptionType type_of(const OptionValue& value);   // the plain type of an alternative
std::string_view type_name(OptionType type);    // "integer", "list of numbers", ...
std::string_view expectation(OptionType type);  // "an integer (digits only)", ...

// What a message may show of a text or a value: of a secret nothing, of an address not who asks.
std::string shown_text(const Option& option, std::string_view text);
std::string shown_value(const Option& option, const OptionValue& value);

std::string to_text(const OptionValue& value);  // as on the command line: 128, true, a,b
// As in a YAML file: 128, true, "text", ["a", "b"]; addresses are masked.
std::string to_yaml(const OptionValue& value);
std::string range_text(
    const Option& option);  // "at least 1", "0 to 4096", "train, eval or predict"; "" without limits

}  // namespace mox::internal
