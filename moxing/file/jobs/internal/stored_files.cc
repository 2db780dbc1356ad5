#include "moxing/file/jobs/internal/stored_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "moxing/file/jobs/internal/place.h"
#include "moxing/file/open_file.h"
#include "runtime/base/file.h"

namespace mox::file::internal {
namespace {

using Clock = std::chrono::system_clock;

// A time of today alone has nineteen digits, and an entry of the map takes more memory than a few bytes.
constexpr size_t kShortestLine = 16;

std::string stored_files_of(const std::string& place) { return place + "/.stored-files"; }

// What stands before the next space of `line`, which is taken off it.
std::string_view next_word(std::string_view& line) {
  const size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

std::optional<int64_t> number_in(std::string_view word) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return number;
}

}  // namespace

Seen seen_at(const std::string& path) {
  const Stat found = file::stat(path);
  return {found.length, found.mtime};
}

bool begins_with_stored(const std::string& url, const Stat& there, const std::string& path) {
  return there.length <= kMostInMemory && there.length <= file::stat(path).length &&
         read(url) == File(path).read(there.length);
}

StoredFiles parse_stored_files(std::string_view content) {
  StoredFiles files;
  while (!content.empty()) {
    const size_t end = std::min(content.find('\n'), content.size());
    std::string_view line = content.substr(0, end);
    content.remove_prefix(std::min(end + 1, content.size()));
    if (line.size() < kShortestLine) continue;
    const std::string_view etag = next_word(line);
    const auto length = number_in(next_word(line)), mtime = number_in(next_word(line));
    if (etag.empty() || !length || !mtime || line.empty()) continue;
    files[std::string(line)] = {std::string(etag), {*length, Clock::time_point(Clock::duration(*mtime))}};
  }
  return files;
}

StoredFiles read_stored_files(const std::string& place) {
  if (!is_there_as_file(stored_files_of(place))) return {};
  return parse_stored_files(read_file(stored_files_of(place)));
}

void write_stored_files(const std::string& place, const StoredFiles& files) {
  std::string lines;
  for (const auto& [name, file] : files)
    if (!file.etag.empty() && file.etag.find_first_of(" \n") == std::string::npos &&
        name.find('\n') == std::string::npos)
      lines += fmt::format("{} {} {} {}\n", file.etag, file.here.length,
                           file.here.mtime.time_since_epoch().count(), name);
  write_into_place(place, ".stored-files", lines);
}

}  // namespace mox::file::internal
