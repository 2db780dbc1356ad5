// Where in the user's program something was made, for error messages. The same idea as std::source_location,
// which clang 14 cannot compile from GCC 12's library.
#pragma once

#include <cstdint>

namespace mox {

class SourceLocation {
 public:
  SourceLocation() = default;
  // As a default argument (`SourceLocation where = SourceLocation::current()`) it is the place of the call.
  static constexpr SourceLocation current(const char* file = __builtin_FILE(),
                                          uint32_t line = __builtin_LINE()) {
    SourceLocation where;
    where.file_ = file;
    where.line_ = line;
    return where;
  }
  constexpr const char* file_name() const { return file_; }
  constexpr uint32_t line() const { return line_; }

 private:
  const char* file_ = "";
  uint32_t line_ = 0;
};

}  // namespace mox
