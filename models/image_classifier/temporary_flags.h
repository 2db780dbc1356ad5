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

}  // namespace image_classifier
