// A file that appears under its name when it is whole.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace mox::internal {

class PartFile {
 public:
  explicit PartFile(std::string path);  // makes PATH.part; throws IoError
  ~PartFile();                          // removes it, unless it was finished
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  void write(std::string_view bytes);  // throws IoError
  void finish();                       // syncs and renames; throws IoError
  const std::string& path() const { return path_; }

 private:
  [[noreturn]] void fail(const char* doing) const;

  std::string path_, part_;
  std::FILE* file_;
};

}  // namespace mox::internal
