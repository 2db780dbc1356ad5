#pragma once

#include <gtest/gtest.h>

#include <string>

namespace mox {

// The text of the error of this type that `function` throws.
template <typename Type, typename Function>
std::string message_of(Function&& function) {
  try {
    function();
  } catch (const Type& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace mox
