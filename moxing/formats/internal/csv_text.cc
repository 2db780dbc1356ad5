#include "moxing/formats/internal/csv_text.h"

#include <fmt/format.h>

#include "moxing/file/file.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace mox::data::internal {

std::string csv_content(const std::string& path) {
  return file::is_remote(path) ? file::read(path) : read_file(path);
}

std::string_view without_spaces(std::string_view text) {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
  return text;
}

std::string_view without_mark(std::string_view content, const std::string& name) {
  if (content.starts_with("\xff\xfe") || content.starts_with("\xfe\xff"))
    throw DataError(fmt::format(
        "'{}' is text in UTF-16; UTF-8 is expected: iconv -f UTF-16 -t UTF-8 '{}' > new.csv", name, name));
  if (content.starts_with("\x1f\x8b"))
    throw DataError(fmt::format("'{}' is compressed by gzip: unpack it with gunzip", name));
  if (content.starts_with("PK\x03\x04"))
    throw DataError(fmt::format("'{}' is a zip archive or a spreadsheet (.xlsx): save it as CSV", name));
  if (content.starts_with("\xef\xbb\xbf")) content.remove_prefix(3);
  return content;
}

}  // namespace mox::data::internal
