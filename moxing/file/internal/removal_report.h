// What a removal has left behind.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mox::file::internal {

class RemovalReport {
 public:
  void keep(const std::string& name, std::string_view why);
  // IoError that names what stays below `top`.
  void throw_if_any(const std::string& top) const;

 private:
  std::vector<std::string> kept_;
};

}  // namespace mox::file::internal
