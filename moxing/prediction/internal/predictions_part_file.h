// The file of the predictions: appears under its name when it is whole.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/new_file.h"

namespace mox::internal {

class PredictionsPartFile {
 public:
  // Throws InvalidArgument where none can be made, IoError.
  explicit PredictionsPartFile(const std::string& path);

  void write(std::string_view bytes);  // throws IoError
  void finish();                       // syncs and renames; throws IoError
  const std::string& path() const { return file_.path(); }

 private:
  void flush();

  NewFile file_;
  std::string buffer_;
};

}  // namespace mox::internal
