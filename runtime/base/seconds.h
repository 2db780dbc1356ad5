// Time that has passed, in seconds: for statistics, log lines, and what waits by them.
#pragma once

#include <chrono>

namespace mox {

inline double in_seconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return in_seconds(std::chrono::steady_clock::now() - begin);
}

}  // namespace mox
