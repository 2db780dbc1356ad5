// Options that are other ones for a part of a program.
#pragma once

#include <moxing/moxing.h>

#include <string>
#include <vector>

namespace image_classifier {

// Sets options for as long as it lives.
class TemporaryFlags {
 public:
  TemporaryFlags() = default;
  TemporaryFlags(const TemporaryFlags&) = delete;
  TemporaryFlags& operator=(const TemporaryFlags&) = delete;
  ~TemporaryFlags() {
    for (const std::string& name : names_) mox::reset_flag(name);
  }

  template <typename T>
  void set(const std::string& name, const T& value) {
    names_.push_back(name);
    mox::set_flag(name, value);
  }

 private:
  std::vector<std::string> names_;
};

// log_dir, or train_url, which is another name of it.
inline std::string log_dir_of_run() {
  const std::string log_dir = mox::flag("log_dir");
  return log_dir.empty() ? mox::flag("train_url") : log_dir;
}

}  // namespace image_classifier
