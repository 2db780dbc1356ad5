// Any text is a file of profiles or a DataError that shows nothing of it; the same of what the metadata
// service says.
#include <cstdint>
#include <string>

#include "moxing/file/s3/credentials.h"
#include "runtime/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    mox::file::s3::parse_profile(text, "FILE", "a");
  } catch (const mox::DataError& error) {
    MOX_ASSERT(std::string(error.what()).starts_with("FILE:"), "an error names the line");
  }
  try {
    const auto found = mox::file::s3::parse_metadata_credentials(text);
    MOX_ASSERT(!found.credentials.empty(), "credentials are not empty");
  } catch (const mox::DataError&) {
  }
  return 0;
}
