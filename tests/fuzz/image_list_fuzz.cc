// Any bytes are a list of images, whose paths lie below the list's directory or are whole, or an error names
// the list. Whether files are there is made up.
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

#include "moxing/image_sets/internal/image_list.h"
#include "runtime/base/error.h"

namespace {

bool names_the_list(const std::exception& error) {
  return std::string_view(error.what()).find("list.txt") != std::string_view::npos;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const auto paths = mox::data::internal::parse_image_list(
        text, "list.txt", [](const std::string& path) { return !path.ends_with("missing"); });
    for (const std::string& path : paths)
      MOX_ASSERT(!path.empty() && path.find('\n') == std::string::npos && !path.ends_with("missing"),
                 "a path is a line");
  } catch (const mox::NotFound& error) {
    MOX_ASSERT(names_the_list(error), "the list is named");
  } catch (const mox::DataError& error) {
    MOX_ASSERT(names_the_list(error), "the list is named");
  }
  return 0;
}
