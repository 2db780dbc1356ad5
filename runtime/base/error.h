// Errors. A user's mistake is thrown as one of the typed exceptions below; its text says what was expected,
// what was given, where, and how to go on. `mox::run` catches once, prints the text and returns a non-zero
// status. A broken invariant of our own is an assertion (MOX_ASSERT): it prints the place and aborts.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "runtime/base/source_location.h"

namespace mox {

// Base of everything this framework throws.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A wrong argument to an op, a layer or another function of the API (shape, dtype, range).
class InvalidArgument : public Error {
 public:
  using Error::Error;
};

// A configuration file or flag that cannot be used (unknown key, wrong type); the text names file and line.
class ConfigError : public Error {
 public:
  using Error::Error;
};

// A named thing (file, variable, checkpoint, flag) that does not exist.
class NotFound : public Error {
 public:
  using Error::Error;
};

// The operating system refused an input or output operation (permissions, full disk); the text
// names the path.
class IoError : public Error {
 public:
  using Error::Error;
};

// Bytes that were read are not what they should be: truncated, wrong magic number, failed checksum.
class DataError : public Error {
 public:
  using Error::Error;
};

// The call is right but not now: a checkpoint is required, mox::init was called twice, a schedule in epochs
// needs data of known size.
class FailedPrecondition : public Error {
 public:
  using Error::Error;
};

// Memory that the process cannot get; the text names what it was for, its size, and the option
// that bounds it.
class OutOfMemory : public Error {
 public:
  using Error::Error;
};

// A value that must be finite is NaN or infinite (the NaN guard).
class NumericError : public Error {
 public:
  using Error::Error;
};

// "file.cc:12" with the directory removed down to the last two components, for messages.
std::string to_string(const SourceLocation& where);

[[noreturn]] void assertion_failed(const char* condition, std::string_view message,
                                   SourceLocation where = SourceLocation::current());

}  // namespace mox

// Checks an invariant of our own code, in every build type: a silent wrong result costs more than the branch.
#define MOX_ASSERT(condition, message)                \
  do {                                                \
    if (!(condition)) [[unlikely]]                    \
      ::mox::assertion_failed(#condition, (message)); \
  } while (false)
