// What this machine knows to be in the store of a run: its checkpoints, and the digests of their manifests.
// Whatever else is there was written by another machine.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace mox::file::internal {

using KnownManifests = std::map<std::string, std::string>;  // "checkpoint-9": digest

std::string digest_of_manifest(const std::string& content);

// A line "NAME DIGEST" for each; another one counts for nothing.
KnownManifests parse_known_manifests(std::string_view content);

// In the file `.stored` of the run's place. Nothing if there is none: the place was never in step
// with a store.
std::optional<KnownManifests> read_known_manifests(const std::string& place);
void write_known_manifests(const std::string& place, const KnownManifests& known);

}  // namespace mox::file::internal
