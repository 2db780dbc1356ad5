// An input as a file, for readers that take a path: in memory, under a name that lasts as long as the object.
#pragma once

#include <cstdint>
#include <string>

namespace mox::fuzz {

class InputFile {
 public:
  InputFile(const uint8_t* data, size_t size);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  int descriptor_ = -1;
  std::string path_;
};

}  // namespace mox::fuzz
