#include "moxing/file/internal/parts/part_journal.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "moxing/file/s3/digest.h"

namespace mox::file::internal {
namespace {

constexpr size_t kMd5Bytes = 16;

}  // namespace

std::string part_journal_line(int64_t index, const std::string& md5) {
  return fmt::format("{} {}\n", index, s3::hex(md5));
}

std::map<int64_t, std::string> parse_part_journal(std::string_view journal) {
  std::map<int64_t, std::string> md5s;
  for (size_t end = journal.find('\n'); end != std::string_view::npos; end = journal.find('\n')) {
    const std::string_view line = journal.substr(0, end);
    journal.remove_prefix(end + 1);
    int64_t index = -1;
    const auto [rest, error] = std::from_chars(line.data(), line.data() + line.size(), index);
    if (error != std::errc() || index < 0 || rest == line.data() + line.size() || *rest != ' ') continue;
    const std::string_view digits = line.substr((rest - line.data()) + 1);
    if (digits.size() != 2 * kMd5Bytes) continue;
    if (std::string md5 = s3::from_hex(digits); md5.size() == kMd5Bytes) md5s[index] = std::move(md5);
  }
  return md5s;
}

}  // namespace mox::file::internal
