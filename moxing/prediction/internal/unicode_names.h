// Names of samples in files whose texts are Unicode, which names of files need not be.
#pragma once

#include <string>
#include <utility>

namespace mox::internal {

class UnicodeNames {
 public:
  // `path`: of the file, for the warning.
  explicit UnicodeNames(std::string path) : path_(std::move(path)) {}

  // The name; of one that is no UTF-8 as printable shows it, so that different names stay different, with a
  // warning for the first.
  std::string operator()(const std::string& name);

 private:
  std::string path_;
  bool has_warned_ = false;
};

}  // namespace mox::internal
