// Flags: a program's own options, beside those of the framework (options.h), and reading either kind by name.
//
//   mox::define_flag("hidden_units", 128, "Units of the hidden layer.");
//   mox::init(argc, argv);  // --hidden_units=256, or `hidden_units: 256` in the YAML
//   int64_t units = mox::get_flag<int64_t>("hidden_units");
//
// data_url, train_url and the other built-in options need no definition. A name that is not declared throws
// NotFound with the nearest one; reading or changing a flag before mox::init throws FailedPrecondition.
// Threads: all functions may be called from any thread.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "moxing/config/options.h"
#include "runtime/base/source_location.h"

namespace mox {

namespace internal {

template <typename T>
struct IsVector : std::false_type {};
template <typename T>
struct IsVector<std::vector<T>> : std::true_type {};

// The stored form of a C++ value: integers as int64_t, floating point as double, text as std::string.
template <typename T>
OptionValue to_option_value(const T& value) {
  if constexpr (std::is_arithmetic_v<T>) {
    static_assert(sizeof(T) < 8 || !std::is_unsigned_v<T>, "integer flags are int64_t: write int64_t{...}");
    return value;
  } else if constexpr (IsVector<T>::value) {
    using Element = typename T::value_type;
    if constexpr (std::is_integral_v<Element>) {
      return std::vector<int64_t>(value.begin(), value.end());
    } else if constexpr (std::is_floating_point_v<Element>) {
      return std::vector<double>(value.begin(), value.end());
    } else {
      return std::vector<std::string>(value.begin(), value.end());
    }
  } else {
    return std::string(std::string_view(value));
  }
}

void define_flag(std::string_view name, OptionValue default_value, std::string_view help,
                 SourceLocation where, bool secret = false);
void set_flag(std::string_view name, OptionValue value);

// Typed reads; each throws InvalidArgument if the flag has another type (an integer may be read as a number).
bool flag_as_bool(std::string_view name);
int64_t flag_as_integer(std::string_view name, int64_t lowest, int64_t highest);
double flag_as_number(std::string_view name);
std::string flag_as_string(std::string_view name);
std::vector<int64_t> flag_as_integer_list(std::string_view name);
std::vector<double> flag_as_number_list(std::string_view name);
std::vector<std::string> flag_as_string_list(std::string_view name);

}  // namespace internal

// Declares a flag, before mox::init. Its type is that of the default: bool, an integer (kept as int64_t),
// floating point (double), text (std::string), or a std::vector of integers, floating point or std::string.
// The name is made of lower-case letters, digits, underscores and dots (dots nest in YAML). Throws
// InvalidArgument for a name that is malformed or taken, by another definition, whose place it says, or by an
// option (but `freeze` and `predictions` give way: the name is the flag's then, and the options are
// moxing.freeze and moxing.predictions), FailedPrecondition after mox::init. What nobody catches ends the
// process as a refused configuration does, from the first definition on, also before main: it sets a handler
// in the place of that of std::set_terminate, as mox::init does; who wants another sets it after mox::init.
template <typename T>
void define_flag(std::string_view name, const T& default_value, std::string_view help,
                 SourceLocation where = SourceLocation::current()) {
  internal::define_flag(name, internal::to_option_value(default_value), help, where);
}

// Declares a flag for a text that nobody else is to see, a password or a key: its value never goes into
// configuration.yaml, --help, messages or what ranks compare; get_flag and flag give it. Without a value it
// is "". A command line is seen by every user of the machine: better `api_key: ${API_KEY}` in the YAML, with
// the secret in the environment. Throws as define_flag does.
void define_secret_flag(std::string_view name, std::string_view help,
                        SourceLocation where = SourceLocation::current());

// The value of a flag as text, whatever its type: "128", "true", "0.5", "a,b"; "" for an option
// without a value.
std::string flag(std::string_view name);

// The value of a flag. T is bool, an integer type, float, double, std::string, or a std::vector of int64_t,
// double or std::string, and must fit the flag's type; a value outside of an integer type's range, and an
// option without a value, throw InvalidArgument.
template <typename T>
T get_flag(std::string_view name) {
  if constexpr (std::is_same_v<T, bool>) {
    return internal::flag_as_bool(name);
  } else if constexpr (std::is_integral_v<T>) {
    constexpr bool kWide = sizeof(T) == 8;
    constexpr int64_t kLowest =
        std::is_unsigned_v<T> ? 0 : static_cast<int64_t>(std::numeric_limits<T>::min());
    constexpr int64_t kHighest =
        kWide ? std::numeric_limits<int64_t>::max() : static_cast<int64_t>(std::numeric_limits<T>::max());
    return static_cast<T>(internal::flag_as_integer(name, kLowest, kHighest));
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(internal::flag_as_number(name));
  } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
    return internal::flag_as_integer_list(name);
  } else if constexpr (std::is_same_v<T, std::vector<double>>) {
    return internal::flag_as_number_list(name);
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    return internal::flag_as_string_list(name);
  } else {
    static_assert(std::is_same_v<T, std::string>,
                  "a flag is a bool, a number, a std::string or a list of these");
    return internal::flag_as_string(name);
  }
}

// Whether somebody has given the flag a value: the configuration, set_flag or the run spec. What a program
// says in mox::init is a default. Throws as option_origin does.
bool is_given(std::string_view name);

// Changes a flag after mox::init; wins over every other source. The value must have the flag's type (an
// integer may be given for a number): InvalidArgument otherwise, ConfigError if it is out of range.
template <typename T>
void set_flag(std::string_view name, const T& value) {
  internal::set_flag(name, internal::to_option_value(value));
}

// data_url on this machine: what it names in an object store is copied here first, by one process of a
// machine, and found by the others and by later runs. For programs with a flag data.cache: others have the
// local path in the flag itself (docs/files.md). Throws what moxing/file/file.h says.
std::string local_data_url();

// Where log_dir (or train_url, which is another name of it) and checkpoint_path lie on this machine, for
// those who read there what a run keeps. What is in an object store is copied here at the first call, as
// mox::run does (docs/files.md), but by rank 0 alone: let it read, and broadcast. "" where the option is
// empty. Throw what moxing/file/file.h says, and NotFound where checkpoint_path names no checkpoint
// of a store.
std::string log_dir_of_run();
std::string checkpoint_path_of_run();

// Takes back what set_flag has said, if it has: the other sources count again. NotFound for a name that is
// not declared.
void reset_flag(std::string_view name);

}  // namespace mox
