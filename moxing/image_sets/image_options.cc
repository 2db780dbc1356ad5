#include "moxing/image_sets/image_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "moxing/file/file.h"
#include "moxing/json/parse_json.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"
#include "runtime/text/printable.h"
#include "runtime/text/utf8.h"

namespace mox::data {

ImageCache image_cache_from_string(std::string_view name) {
  if (name == "none") return ImageCache::kNone;
  if (name == "memory") return ImageCache::kMemory;
  if (name == "directory") return ImageCache::kDirectory;
  throw InvalidArgument(fmt::format("the cache is '{}', it must be 'none', 'memory' or 'directory'", name));
}

CacheContent cache_content_from_string(std::string_view name) {
  if (name == "decoded") return CacheContent::kDecoded;
  if (name == "resized") return CacheContent::kResized;
  if (name == "bytes") return CacheContent::kBytes;
  throw InvalidArgument(
      fmt::format("the content of the cache is '{}', it must be 'decoded', 'resized' or 'bytes'", name));
}

OnBadSample on_bad_sample_from_string(std::string_view name) {
  if (name == "error") return OnBadSample::kError;
  if (name == "skip") return OnBadSample::kSkip;
  throw InvalidArgument(fmt::format("on_bad_sample must be 'error' or 'skip', it is '{}'", name));
}

void BadSamples::add(int64_t index, const std::string& reason, int64_t limit) {
  count_one(index, reason, limit, true);
}

void BadSamples::add_of_another_rank(int64_t index, const std::string& reason, int64_t limit) {
  count_one(index, reason, limit, false);
}

void BadSamples::count_one(int64_t index, const std::string& reason, int64_t limit, bool logs) {
  constexpr size_t kMostReasons = 1000, kShown = 5;
  const std::lock_guard lock(mutex_);
  const bool is_news = indices_.insert(index).second;
  if (is_news && reasons_.size() < kMostReasons) reasons_.push_back(reason);
  if (is_news && logs)
    log_warning(fmt::format("sample {} is skipped ({} so far): {}", index, indices_.size(), reason));
  if (std::ssize(indices_) <= limit) return;
  const std::span shown(reasons_.data(), std::min(kShown, reasons_.size()));
  throw DataError(
      fmt::format("{} samples cannot be read, more than the limit of {} (max_bad_samples). Some are: {}",
                  indices_.size(), limit, fmt::join(shown, "; ")));
}

int64_t BadSamples::count() const {
  const std::lock_guard lock(mutex_);
  return indices_.size();
}

std::vector<std::string> BadSamples::reasons() const {
  const std::lock_guard lock(mutex_);
  return reasons_;
}

namespace {

bool must_be_quoted(const std::string& name) { return name.starts_with(' ') || name.starts_with('"'); }

// A name that reading would change otherwise.
std::string quoted_name(const std::string& name) {
  return must_be_quoted(name) ? nlohmann::json(name).dump() : name;
}

std::string unquoted_name(std::string_view name) {
  if (name.size() < 2 || !name.starts_with('"') || !name.ends_with('"')) return std::string(name);
  const auto text = parse_json_or_discard(name);
  return text.is_string() ? text.get<std::string>() : std::string(name);
}

}  // namespace

std::vector<std::string> parse_label_names(std::string_view content, const std::string& path) {
  std::map<size_t, std::string> names;
  size_t line_number = 0;
  content = without_byte_order_mark(content);
  for (size_t begin = 0; begin < content.size();) {
    const size_t end = std::min(content.find('\n', begin), content.size());
    std::string_view line(content.data() + begin, end - begin);
    begin = end + 1;
    ++line_number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    size_t index = 0;
    const auto [rest, error] = std::from_chars(line.data(), line.data() + line.size(), index);
    std::string_view name(rest, line.data() + line.size() - rest);
    if (error != std::errc() || !name.starts_with(':'))
      throw DataError(
          fmt::format("'{}', line {}: 'number: name' is expected, '{}' is given", path, line_number, line));
    name.remove_prefix(1);
    name.remove_prefix(std::min(name.find_first_not_of(' '), name.size()));
    const std::string unquoted = unquoted_name(name);
    if (unquoted.empty())
      throw DataError(fmt::format("'{}', line {}: label {} has no name", path, line_number, index));
    if (!names.emplace(index, unquoted).second)
      throw DataError(fmt::format("'{}', line {}: label {} is given twice", path, line_number, index));
  }
  std::vector<std::string> result;
  std::unordered_set<std::string_view> seen;
  for (const auto& [index, name] : names) {
    if (index != result.size())
      throw DataError(fmt::format("'{}': label {} is missing; labels are numbered 0, 1, 2, ... without a gap",
                                  path, result.size()));
    if (!seen.insert(name).second)
      throw DataError(fmt::format("'{}': two labels are called '{}'", path, name));
    result.push_back(name);
  }
  if (result.empty()) throw DataError(fmt::format("'{}': there are no labels in this file", path));
  return result;
}

std::vector<std::string> read_label_names(const std::string& path) {
  return parse_label_names(file::is_remote(path) ? file::read(path) : read_file(path), path);
}

void require_writable_names(const std::vector<std::string>& names, const std::string& place) {
  for (const std::string& name : names) {
    if (name.empty()) throw DataError(fmt::format("'{}': a class has an empty name", place));
    if (must_be_quoted(name) && !is_utf8(name))
      throw DataError(fmt::format(
          "'{}': the class '{}' begins with a space or a quote, so that labels.txt has it as JSON, and "
          "its bytes are no UTF-8, which that has to be; give it another name",
          place, printable(name)));
    const auto is_control = [](unsigned char letter) { return letter < ' ' || letter == 127; };
    const auto control = std::ranges::find_if(name, is_control);
    if (control == name.end()) continue;
    throw DataError(
        fmt::format("'{}': the class '{}' has a character in its name that is no letter but controls a "
                    "terminal or ends a line (\\x{:02x}): labels.txt has a line for each class; give it "
                    "another name",
                    place, printable(name), static_cast<unsigned char>(*control)));
  }
}

void write_label_names(const std::string& path, const std::vector<std::string>& names) {
  require_writable_names(names, path);
  std::string content;
  for (size_t i = 0; i < names.size(); ++i) content += fmt::format("{}: {}\n", i, quoted_name(names[i]));
  write_file_atomically(path, content);
}

}  // namespace mox::data
