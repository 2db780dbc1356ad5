#include "moxing/image_sets/internal/image_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "moxing/file/file.h"
#include "runtime/base/error.h"
#include "runtime/text/utf8.h"

namespace mox::data::internal {
namespace {

namespace fs = std::filesystem;

// Of names of one letter there are not so many: the list names the same files again and again, and each takes
// far more memory than its line.
constexpr size_t kMostOfOneLetter = 1000;

// Takes the first line off `text`, without its end.
std::string_view next_line(std::string_view* text) {
  std::string_view line = text->substr(0, text->find('\n'));
  text->remove_prefix(std::min(line.size() + 1, text->size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::string path_of(std::string_view line, const std::string& list) {
  const bool is_whole = fs::path(line).is_absolute() || file::is_remote(std::string(line));
  return is_whole ? std::string(line) : (fs::path(list).parent_path() / line).string();
}

}  // namespace

std::vector<std::string> parse_image_list(std::string_view text, const std::string& list,
                                          FunctionRef<bool(const std::string&)> exists) {
  text = without_byte_order_mark(text);
  size_t names = 0, letters = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = next_line(&rest);
    names += line.empty() ? 0 : 1;
    letters += line.size();
  }
  if (names > kMostOfOneLetter && letters < 2 * names)
    throw DataError(
        fmt::format("'{}' is no list of images: most of its {} lines have one letter", list, names));
  std::vector<std::string> paths;
  paths.reserve(names);
  int64_t number = 0;
  while (!text.empty()) {
    const std::string_view line = next_line(&text);
    ++number;
    if (line.empty()) continue;
    try {
      std::string path = path_of(line, list);
      if (!exists(path))
        throw NotFound(fmt::format("'{}', line {}: there is no file '{}'", list, number, path));
      paths.push_back(std::move(path));
    } catch (const InvalidArgument& error) {  // no name that a file has
      throw DataError(fmt::format("'{}', line {}: {}", list, number, error.what()));
    }
  }
  return paths;
}

}  // namespace mox::data::internal
