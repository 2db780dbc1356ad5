#include "moxing/file/jobs/internal/known_manifests.h"

#include <sstream>

#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace mox::file::internal {
namespace {

std::string path_in(const std::string& place) { return place + "/.stored"; }

}  // namespace

std::string digest_of_manifest(const std::string& content) {
  Sha256 digest;
  digest.update(content);
  return digest.hex();
}

std::optional<KnownManifests> read_known_manifests(const std::string& place) {
  if (!is_there_as_file(path_in(place))) return std::nullopt;
  KnownManifests known;
  std::istringstream lines(read_file(path_in(place)));
  for (std::string name, digest; lines >> name >> digest;) known[name] = digest;
  return known;
}

void write_known_manifests(const std::string& place, const KnownManifests& known) {
  std::string lines;
  for (const auto& [name, digest] : known) lines += name + ' ' + digest + '\n';
  write_file_atomically(path_in(place), lines);
}

}  // namespace mox::file::internal
