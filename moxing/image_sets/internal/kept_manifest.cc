#include "moxing/image_sets/internal/kept_manifest.h"

#include <fmt/format.h>

#include <span>
#include <sstream>

#include "moxing/formats/tfrecord.h"
#include "moxing/image/planar_bitmap.h"

namespace mox::data::internal {
namespace {

constexpr std::string_view kTitle = "kept images of moxing, version 4";
constexpr std::string_view kChecksum = "checksum ";
constexpr uint32_t kMostLabelBytes = 1 << 24;

uint32_t checksum_of(std::string_view text) {
  return crc32c(std::as_bytes(std::span(text.data(), text.size())));
}

// Whether the entry can be true: its sizes agree, and it lies within the file. What is read later is
// sized by it.
bool is_sound(const KeptEntry& entry, uint64_t file_bytes) {
  if (entry.offset > file_bytes || entry.bytes > file_bytes || entry.label_bytes > kMostLabelBytes ||
      entry.end() > file_bytes || entry.width < 0 || entry.height < 0)
    return false;
  const uint64_t pixels = static_cast<uint64_t>(entry.width) * entry.height;
  return (entry.width == 0 && entry.height == 0) || (pixels > 0 && entry.bytes == pixels * image::kPlanes);
}

}  // namespace

std::string manifest_text(const std::string& identity, const KeptEntries& entries) {
  std::string text = fmt::format("{}\n{}\n", kTitle, identity);
  for (size_t i = 0; i < entries.size(); ++i)
    if (const auto& entry = entries[i])
      text += fmt::format("{} {} {} {} {} {} {}\n", i, entry->offset, entry->bytes, entry->width,
                          entry->height, entry->label_bytes, entry->checksum);
  return text + fmt::format("{}{}\n", kChecksum, checksum_of(text));
}

KeptEntries parse_manifest(std::string_view text, const std::string& identity, size_t images,
                           uint64_t file_bytes, std::string* problem) {
  KeptEntries entries(images);
  const size_t last = text.rfind(kChecksum);
  const std::string_view body = text.substr(0, last == std::string_view::npos ? 0 : last);
  if (last == std::string_view::npos ||
      text.substr(last) != fmt::format("{}{}\n", kChecksum, checksum_of(body))) {
    *problem = "its manifest is damaged";
    return entries;
  }
  std::istringstream lines{std::string(body)};
  std::string title, given;
  std::getline(lines, title);
  std::getline(lines, given);
  if (title != kTitle) {
    *problem = fmt::format("it is '{}', not '{}'", title, kTitle);
    return entries;
  }
  if (given != identity) {
    *problem = fmt::format("it belongs to other images ({}; these are {})", given, identity);
    return entries;
  }
  size_t index = 0;
  for (KeptEntry entry; lines >> index >> entry.offset >> entry.bytes >> entry.width >> entry.height >>
                        entry.label_bytes >> entry.checksum;) {
    if (index >= images || !is_sound(entry, file_bytes)) {
      *problem = fmt::format("its manifest does not agree with its {} bytes of images", file_bytes);
      return KeptEntries(images);
    }
    entries[index] = entry;
  }
  return entries;
}

}  // namespace mox::data::internal
