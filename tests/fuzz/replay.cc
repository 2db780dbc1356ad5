// The main function of a fuzz target outside of libFuzzer: runs it on each file of the folders that are
// given, and fails where an input took more memory than allowed_heap says. Ends with the largest peaks.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/base/file.h"
#include "tests/fuzz/heap_peak.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

struct Peak {
  std::string name;
  size_t size = 0, bytes = 0, allowed = 0;
  double ratio() const { return static_cast<double>(bytes) / static_cast<double>(std::max<size_t>(size, 1)); }
};

Peak peak_of(const std::filesystem::path& path) {
  const std::string content = mox::read_file(path.string());
  const auto* data = reinterpret_cast<const uint8_t*>(content.data());
  // What a process makes once, at first use (locales, tables), is no input's.
  LLVMFuzzerTestOneInput(data, content.size());
  mox::fuzz::restart_heap_peak();
  LLVMFuzzerTestOneInput(data, content.size());
  return {path.filename().string(), content.size(), mox::fuzz::heap_peak(),
          mox::fuzz::allowed_heap(data, content.size())};
}

}  // namespace

int main(int argc, char** argv) try {
  std::vector<Peak> peaks;
  for (int i = 1; i < argc; ++i)
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      fmt::print("{}\n", entry.path().string());
      std::fflush(stdout);
      peaks.push_back(peak_of(entry.path()));
    }
  const bool is_within =
      std::ranges::all_of(peaks, [](const Peak& peak) { return peak.bytes <= peak.allowed; });
  std::ranges::sort(peaks, std::ranges::greater(), &Peak::bytes);
  fmt::print("{} files; the largest peaks of the heap:\n", peaks.size());
  for (size_t i = 0; i < peaks.size() && i < 5; ++i)
    fmt::print("  {:10} bytes for {:8} ({:6.1f} times) {}\n", peaks[i].bytes, peaks[i].size, peaks[i].ratio(),
               peaks[i].name);
  for (const Peak& peak : peaks)
    if (peak.bytes > peak.allowed)
      fmt::print("TOO MUCH: {} takes {} bytes of the heap for {}; {} are allowed\n", peak.name, peak.bytes,
                 peak.size, peak.allowed);
  return !peaks.empty() && is_within ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
