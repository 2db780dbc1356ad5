// Options that are other ones for a part of a program.
#pragma once

#include <moxing/moxing.h>

#include <string>
#include <type_traits>
#include <variant>
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

  // The option, or all of the section, gets its default, with which it does nothing.
  void switch_off(const std::string& section) {
    for (const mox::Option& option : mox::built_in_options())
      if (option.name == section || option.name.starts_with(section + "."))
        std::visit(
            [&](const auto& value) {
              if constexpr (!std::is_same_v<std::decay_t<decltype(value)>, std::monostate>)
                set(option.name, value);
            },
            option.default_value);
  }

 private:
  std::vector<std::string> names_;
};

}  // namespace image_classifier
