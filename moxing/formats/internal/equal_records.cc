#include "moxing/formats/internal/equal_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "runtime/base/log.h"

namespace mox::data::internal {
namespace {

constexpr size_t kLookedAt = 16;  // records of a file, the first and the last among them

bool are_as_long(const RecordFile& a, const RecordFile& b) {
  return std::ranges::equal(a.offsets, b.offsets);
}

// Checksums of records all over the file.
std::vector<uint32_t> sample_of(const RecordFile& file, size_t number, ChecksumAt checksum_at) {
  const size_t records = file.offsets.size() - 1, count = std::min(records, kLookedAt);
  std::vector<uint32_t> checksums;
  for (size_t i = 0; i < count; ++i) {
    const size_t record = count == 1 ? 0 : i * (records - 1) / (count - 1);
    checksums.push_back(checksum_at(number, file.offsets[record + 1]));
  }
  return checksums;
}

// What is compared of a file; made when another one is as long.
struct Content {
  size_t file;
  std::string version;
  std::vector<uint32_t> checksums;
  bool operator==(const Content& other) const {
    return version == other.version && checksums == other.checksums;
  }
};

}  // namespace

void warn_of_equal_records(const std::vector<RecordFile>& files, ChecksumAt checksum_at) {
  std::vector<size_t> order(files.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::erase_if(order, [&](size_t i) { return files[i].offsets.size() < 2; });
  std::ranges::stable_sort(order, [&](size_t a, size_t b) {
    return std::ranges::lexicographical_compare(files[a].offsets, files[b].offsets);
  });
  size_t copies = 0;
  std::string first, second;
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    end = begin + 1;
    while (end < order.size() && are_as_long(files[order[begin]], files[order[end]])) ++end;
    if (end - begin == 1) continue;
    std::vector<Content> known;
    for (size_t i = begin; i < end; ++i) {
      const RecordFile& file = files[order[i]];
      Content content{order[i], file.version, {}};
      if (file.version.empty()) content.checksums = sample_of(file, order[i], checksum_at);
      const auto same = std::ranges::find(known, content);
      if (same == known.end()) {
        known.push_back(std::move(content));
      } else if (copies++ == 0) {
        first = files[same->file].path;
        second = file.path;
      }
    }
  }
  if (copies == 0) return;
  log_warning(fmt::format(
      "'{}' and '{}' have the same records{}, whose samples count twice. Is one a copy that took the place "
      "of another file? Copy that one anew, or leave the copy out",
      first, second,
      copies > 1 ? fmt::format(" (as {} more files have those of another one)", copies - 1) : ""));
}

}  // namespace mox::data::internal
