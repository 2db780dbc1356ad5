// What a checkpoint's state.json begins with.
#pragma once

#include <string>

namespace mox::file {

inline std::string manifest(const std::string& text) {
  return "{\n  \"crc32\": \"00000000\",\n  \"format\": \"moxing checkpoint\",\n" + text;
}

}  // namespace mox::file
