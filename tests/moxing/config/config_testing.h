// What the tests of the configuration share.
#pragma once

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "moxing/config/init.h"
#include "runtime/base/error.h"
#include "tests/support/message_of.h"

namespace mox {

// A file that lives as long as the object.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content) {
    static std::atomic<int> counter{0};
    path_ = (std::filesystem::temp_directory_path() /
             ("moxing_config_" + std::to_string(::getpid()) + "_" + std::to_string(counter++) + ".yaml"))
                .string();
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The text with which a configuration is refused.
inline std::string refusal(const std::vector<std::string>& arguments) {
  return message_of<ConfigError>([&] { const ScopedConfiguration scope(arguments); });
}

}  // namespace mox
