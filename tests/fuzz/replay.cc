// The main function of a fuzz target outside of libFuzzer: runs it on each file of the folders that are
// given, and fails where an input took more memory than allowed_heap says. Ends with the largest peaks, and a
// line for the table of tests/fuzz/memory.
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
  double share() const { return static_cast<double>(bytes) / static_cast<double>(allowed); }
};

// The ratio says something of inputs that are larger than what a reader takes at any size.
constexpr size_t kSmall = 16 << 10;

// "memory: INPUTS RATIO NAME-OR-- BYTES SHARE": the worst ratio of inputs that are not small, and which it
// is; the largest peak of small ones; the worst share of what is allowed.
void print_summary(const std::vector<Peak>& peaks) {
  const Peak* worst = nullptr;
  size_t bytes_of_small = 0;
  double share = 0;
  for (const Peak& peak : peaks) {
    if (peak.size < kSmall)
      bytes_of_small = std::max(bytes_of_small, peak.bytes);
    else if (!worst || peak.ratio() > worst->ratio())
      worst = &peak;
    share = std::max(share, peak.share());
  }
  fmt::print("memory: {} {:.1f} {} {} {:.3f}\n", peaks.size(), worst ? worst->ratio() : 0.0,
             worst ? worst->name : "-", bytes_of_small, share);
}

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
  print_summary(peaks);
  return !peaks.empty() && is_within ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
