// Starts programs by mox launch.
#pragma once

#include <filesystem>
#include <string>

#include "runtime/base/file.h"
#include "tests/distributed/job.h"

namespace mox {

class Launch : public TrainingTest {
 protected:
  // A program of these lines.
  static std::string script_at(const std::string& path, const std::string& lines) {
    write_file_atomically(path, "#!/bin/bash\n" + lines);
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
  static std::string script(const std::string& name, const std::string& lines) {
    return script_at(fresh(name), lines);
  }
  static Words launch(const Words& flags, const Words& command) {
    return Words{"mox", "launch"} + flags + Words{"--", MOX_BINARY_DIR "/bin/" + command[0]} +
           Words(command.begin() + 1, command.end());
  }
  static std::string file_of(const std::string& content) {
    std::string path = fresh("file");
    write_file_atomically(path, content);
    return path;
  }
};

}  // namespace mox
