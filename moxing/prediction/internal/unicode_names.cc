#include "moxing/prediction/internal/unicode_names.h"

#include <fmt/format.h>

#include <utility>

#include "runtime/base/log.h"
#include "runtime/text/printable.h"
#include "runtime/text/utf8.h"

namespace mox::internal {

std::string UnicodeNames::operator()(const std::string& name) {
  if (is_utf8(name)) return name;
  std::string shown = printable(name);
  if (!std::exchange(has_warned_, true))
    log_warning(fmt::format(
        "the name of a sample is no UTF-8, which the texts of '{}' are: it is written as '{}', and bytes of "
        "others in the same way. Rename the files, or write .csv, which has their bytes as they are",
        path_, shown));
  return shown;
}

}  // namespace mox::internal
