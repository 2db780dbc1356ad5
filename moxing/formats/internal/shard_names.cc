#include "moxing/formats/internal/shard_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "moxing/file/file.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace mox::data::internal {
namespace {

// Of stem-00001-of-00004.extension; the stem has its directory.
struct ShardName {
  std::string path, stem;
  int64_t index = 0, count = 0;
};

std::optional<int64_t> digits_to_number(std::string_view text) {
  int64_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || rest != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::optional<ShardName> shard_name(std::string_view path) {
  const size_t of = path.rfind("-of-");
  if (of == std::string_view::npos || of == 0) return std::nullopt;
  const size_t dash = path.rfind('-', of - 1);
  if (dash == std::string_view::npos) return std::nullopt;
  const size_t end = std::min(path.find_first_not_of("0123456789", of + 4), path.size());
  const auto index = digits_to_number(path.substr(dash + 1, of - dash - 1));
  const auto count = digits_to_number(path.substr(of + 4, end - of - 4));
  if (!index || !count || (end < path.size() && path[end] != '.')) return std::nullopt;
  return ShardName{std::string(path), std::string(path.substr(0, dash)), *index, *count};
}

bool is_copy(const std::string& path) {
  if (path.ends_with('~') || path.ends_with('#')) return true;
  const std::string extension = std::filesystem::path(path).extension().string();
  for (const char* known : {".bak", ".old", ".orig", ".save", ".tmp", ".temp", ".part", ".partial", ".swp"})
    if (extension == known) return true;
  return false;
}

void warn_left_out(const std::string& pattern, const std::vector<std::string>& paths, const char* why) {
  if (paths.empty()) return;
  log_warning(fmt::format("'{}': left out are {} files that {}: '{}'{}", pattern, paths.size(), why,
                          paths.front(), paths.size() == 1 ? "" : ", ..."));
}

// Moves those out of `paths` that `leaves` is true for.
template <typename Leaves>
std::vector<std::string> take_out(std::vector<std::string>* paths, const Leaves& leaves) {
  const auto middle =
      std::stable_partition(paths->begin(), paths->end(), [&](const auto& path) { return !leaves(path); });
  std::vector<std::string> out(middle, paths->end());
  paths->erase(middle, paths->end());
  return out;
}

bool is_empty_file(const std::string& path) {
  if (file::is_remote(path)) return file::stat(path).length == 0;
  std::error_code error;
  return std::filesystem::file_size(path, error) == 0 && !error;
}

// What says of a shard that it is done, as other tools leave it: an empty file of the shard's name and more.
void leave_out_marks(const std::string& pattern, std::vector<std::string>* paths) {
  std::map<std::tuple<std::string, int64_t, int64_t>, std::vector<std::string>> shards;
  for (const std::string& path : *paths) {
    ShardName name = *shard_name(path);
    shards[{std::move(name.stem), name.index, name.count}].push_back(path);
  }
  std::set<std::string> marks;
  for (auto& [name, files] : shards) {
    if (files.size() == 1) continue;
    // The shard itself may be empty, too.
    std::ranges::sort(files, {}, &std::string::size);
    const bool is_first_empty = is_empty_file(files.front());
    for (size_t i = 1; i < files.size(); ++i)
      if (is_empty_file(files[i]))
        marks.insert(files[i]);
      else if (is_first_empty)
        marks.insert(files.front());
  }
  warn_left_out(pattern, take_out(paths, [&](const auto& path) { return marks.contains(path); }),
                "are empty, beside the shard of their number");
}

void require_all_shards(const std::string& stem, const std::vector<ShardName>& shards) {
  std::map<int64_t, std::set<int64_t>> by_count;
  for (const ShardName& shard : shards) by_count[shard.count].insert(shard.index);
  if (by_count.size() > 1) {
    std::string counts;
    for (const auto& [count, indices] : by_count)
      counts += fmt::format("{}{} of '-of-{:05}'", counts.empty() ? "" : ", ", indices.size(), count);
    throw DataError(
        fmt::format("'{}-*' matches shards of different sets: {}. One set is left over from another "
                    "conversion: remove it, or name the files that are meant",
                    stem, counts));
  }
  const auto& [count, indices] = *by_count.begin();
  std::map<int64_t, const std::string*> seen;
  for (const ShardName& shard : shards)
    if (const auto [other, is_new] = seen.emplace(shard.index, &shard.path); !is_new)
      throw DataError(fmt::format(
          "'{}' and '{}' are both shard {} of '{}-*', whose samples would count twice. Remove the "
          "one that is not meant, or name the files that are meant one by one",
          *other->second, shard.path, shard.index, stem));
  if (*indices.rbegin() >= count)
    throw DataError(fmt::format("'{}-{:05}-of-{:05}': a shard's number must be below {}", stem,
                                *indices.rbegin(), count, count));
  const int64_t present = indices.size();
  if (present == count) return;
  int64_t first = 0;
  while (indices.contains(first)) ++first;
  throw DataError(
      fmt::format("{} of {} shards of '{}' are missing, the first is '{}-{:05}-of-{:05}'. Copy them here, "
                  "or name the files that are meant one by one",
                  count - present, count, stem, stem, first, count));
}

}  // namespace

std::vector<std::string> choose_shards(const std::string& pattern, std::vector<std::string> paths,
                                       size_t literal) {
  if (!pattern.ends_with('*')) return paths;
  warn_left_out(pattern, take_out(&paths, is_copy), "look like copies");
  if (std::none_of(paths.begin(), paths.end(), [](const auto& path) { return shard_name(path).has_value(); }))
    return paths;
  warn_left_out(pattern, take_out(&paths, [](const auto& path) { return !shard_name(path); }),
                "are not called NAME-NNNNN-of-NNNNN");
  if (pattern.find_first_of("*?[", literal) + 1 != pattern.size())
    return paths;  // a part of the shards may be meant
  if (pattern.ends_with("-*")) {
    const std::string stem = pattern.substr(0, pattern.size() - 2);
    auto others = take_out(&paths, [&](const auto& path) { return shard_name(path)->stem != stem; });
    if (paths.empty())
      paths = std::move(others);  // "a-*" where only a-b-00000-of-00001 is there means that
    else
      warn_left_out(pattern, others, "are shards of another name");
  }
  leave_out_marks(pattern, &paths);
  std::map<std::string, std::vector<ShardName>> sets;
  for (const std::string& path : paths) {
    ShardName name = *shard_name(path);
    const std::string stem = name.stem;
    sets[stem].push_back(std::move(name));
  }
  for (const auto& [stem, shards] : sets) require_all_shards(stem, shards);
  return paths;
}

}  // namespace mox::data::internal
