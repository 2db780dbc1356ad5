#include "moxing/file/jobs/internal/known_manifests.h"

#include <algorithm>

#include "moxing/file/jobs/internal/place.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace mox::file::internal {
namespace {

std::string path_in(const std::string& place) { return place + "/.stored"; }

bool is_digest(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

std::string digest_of_manifest(const std::string& content) {
  Sha256 digest;
  digest.update(content);
  return digest.hex();
}

KnownManifests parse_known_manifests(std::string_view content) {
  KnownManifests known;
  while (!content.empty()) {
    const size_t end = std::min(content.find('\n'), content.size());
    const std::string_view line = content.substr(0, end);
    content.remove_prefix(std::min(end + 1, content.size()));
    const size_t space = line.find(' ');
    if (space == 0 || space == std::string_view::npos || !is_digest(line.substr(space + 1))) continue;
    known[std::string(line.substr(0, space))] = line.substr(space + 1);
  }
  return known;
}

std::optional<KnownManifests> read_known_manifests(const std::string& place) {
  if (!is_there_as_file(path_in(place))) return std::nullopt;
  return parse_known_manifests(read_file(path_in(place)));
}

void write_known_manifests(const std::string& place, const KnownManifests& known) {
  std::string lines;
  for (const auto& [name, digest] : known) lines += name + ' ' + digest + '\n';
  write_into_place(place, ".stored", lines);
}

}  // namespace mox::file::internal
