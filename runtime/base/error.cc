#include "runtime/base/error.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "runtime/text/printable.h"

namespace mox {

std::string to_string(const SourceLocation& where) {
  std::string_view path = where.file_name();
  auto last = path.rfind('/');
  if (last != std::string_view::npos && last > 0) {
    auto before = path.rfind('/', last - 1);
    if (before != std::string_view::npos) path.remove_prefix(before + 1);
  }
  return fmt::format("{}:{}", path, where.line());
}

void assertion_failed(const char* condition, std::string_view message, SourceLocation where) {
  fmt::print(stderr,
             "moxing: internal error at {}: {} ({}). This is a fault in moxing, not in your program.\n",
             to_string(where), printable_message(message), condition);
  std::fflush(stderr);
  std::abort();
}

}  // namespace mox
