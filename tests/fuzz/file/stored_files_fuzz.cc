// Any bytes are what a run's place keeps of its store, `.stored-files` and `.stored`: entries that could have
// been written, or none.
#include <cstdint>
#include <string_view>

#include "moxing/file/jobs/internal/known_manifests.h"
#include "moxing/file/jobs/internal/stored_files.h"
#include "runtime/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mox::file::internal;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto& [name, file] : parse_stored_files(text))
    MOX_ASSERT(!name.empty() && !file.etag.empty() && name.find('\n') == std::string::npos &&
                   file.etag.find_first_of(" \n") == std::string::npos,
               "an entry is one that is written");
  for (const auto& [name, digest] : parse_known_manifests(text))
    MOX_ASSERT(!name.empty() && digest.size() == 64, "a manifest has a digest");
  return 0;
}
