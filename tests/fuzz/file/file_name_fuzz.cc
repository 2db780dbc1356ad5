// Any text is a local path, an object's URL or an InvalidArgument; keys come back from their encoding.
#include <cstdint>
#include <string>

#include "moxing/file/file.h"
#include "moxing/file/s3/uri.h"
#include "runtime/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const bool remote = mox::file::is_remote(text);
    if (!remote) MOX_ASSERT(!mox::file::local_path(text).empty(), "a local name is a path");
  } catch (const mox::InvalidArgument&) {
  }
  MOX_ASSERT(mox::file::s3::percent_decode(mox::file::s3::percent_encode(text)) == text,
             "an encoding loses nothing");
  mox::file::s3::percent_decode(text);
  return 0;
}
