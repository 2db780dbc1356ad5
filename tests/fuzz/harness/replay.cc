// The main function of a fuzz target outside of libFuzzer: runs it on each file of the folders that are
// given, and fails where an input took more memory than allowed_heap says. Ends with the largest peaks, and a
// line for the table of tests/fuzz/memory.
//
// --search COUNT: goes on with so many inputs that are made of these by chance (mutation.h), the same ones on
// each machine; no longer than twenty seconds, which the readers of large files and slow machines need.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/base/file.h"
#include "tests/fuzz/harness/heap_peak.h"
#include "tests/fuzz/harness/mutation.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

struct Peak {
  std::string name;
  size_t size = 0, bytes = 0, allowed = 0, decoded = 0;
  // To what was given, or to what it decodes to.
  double ratio() const {
    return static_cast<double>(bytes) / static_cast<double>(std::max({size, decoded, size_t{1}}));
  }
  double share() const { return static_cast<double>(bytes) / static_cast<double>(allowed); }
};

// The ratio says something of inputs that are larger than what a reader takes at any size.
constexpr size_t kSmall = mox::fuzz::kSmallInput;

// What an input that was made by chance may take beyond what is allowed for it: those that are kept are the
// worst that are known, but a search need not find the worst.
constexpr size_t kSpare = 1 << 20;

constexpr unsigned kMostSeconds = 60;  // for an input
constexpr std::chrono::seconds kMostSearch(20);

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

struct Input {
  std::string name, content;
};

size_t heap_of(const std::string& content) {
  mox::fuzz::restart_heap_peak();
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(content.data()), content.size());
  return mox::fuzz::heap_peak();
}

size_t allowed_for(const std::string& content) {
  return mox::fuzz::allowed_heap(reinterpret_cast<const uint8_t*>(content.data()), content.size());
}

Peak peak_of(const Input& input) {
  heap_of(input.content);  // what a process makes once, at first use (locales, tables), is no input's
  const size_t bytes = heap_of(input.content);
  const auto* data = reinterpret_cast<const uint8_t*>(input.content.data());
  return {input.name, input.content.size(), bytes, allowed_for(input.content),
          mox::fuzz::decoded_bytes(data, input.content.size())};
}

// The number of the input that is tried, for whoever looks for what ended the process.
volatile std::sig_atomic_t tried = 0;

extern "C" void say_and_end(int signal) {
  char text[80] = "the input that ended the process: --input ";
  size_t size = std::strlen(text);
  char digits[12];
  size_t count = 0;
  for (int rest = tried; count == 0 || rest > 0; rest /= 10)
    digits[count++] = static_cast<char>('0' + rest % 10);
  while (count > 0) text[size++] = digits[--count];
  text[size++] = '\n';
  if (::write(STDERR_FILENO, text, size) < 0) return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

std::string input_of(const std::vector<Input>& inputs, int number) {
  const auto one = [&](int which) -> const std::string& {
    return inputs[static_cast<size_t>(which) % inputs.size()].content;
  };
  return mox::fuzz::mutated(one(number), one(number / static_cast<int>(inputs.size())),
                            static_cast<uint64_t>(number));
}

bool try_one(const std::vector<Input>& inputs, int number) {
  tried = number;
  const std::string content = input_of(inputs, number);
  try {
    const size_t bytes = heap_of(content), allowed = allowed_for(content) + kSpare;
    if (bytes <= allowed) return true;
    fmt::print(stderr, "TOO MUCH: --input {} takes {} bytes of the heap for {}; {} are allowed\n", number,
               bytes, content.size(), allowed_for(content));
  } catch (const std::exception& error) {
    fmt::print(stderr, "--input {}: {}\n", number, error.what());
  }
  return false;
}

// The sanitizers report these signals better.
void watch_signals() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE}) std::signal(signal, say_and_end);
#endif
  for (const int signal : {SIGABRT, SIGALRM}) std::signal(signal, say_and_end);
}

bool search(const std::vector<Input>& inputs, int count) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + kMostSearch;
  watch_signals();
  int number = 0;
  for (; number < count && Clock::now() < end; ++number) {
    ::alarm(kMostSeconds);
    if (!try_one(inputs, number)) return false;
  }
  ::alarm(0);
  fmt::print("{} inputs made of them were tried\n", number);
  return true;
}

}  // namespace

int main(int argc, char** argv) try {
  std::vector<Input> inputs;
  int count = 0, only = -1;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--search" && i + 1 < argc) {
      count = std::stoi(argv[++i]);
    } else if (argument == "--input" && i + 1 < argc) {
      only = std::stoi(argv[++i]);
    } else {
      for (const auto& entry : std::filesystem::directory_iterator(argument))
        inputs.push_back({entry.path().filename().string(), mox::read_file(entry.path().string())});
    }
  }
  std::ranges::sort(inputs, {}, &Input::name);  // the order of a folder is another on each machine
  if (inputs.empty()) return 1;
  if (only >= 0) {
    watch_signals();
    const std::string content = input_of(inputs, only);
    std::fwrite(content.data(), 1, content.size(), stdout);
    return try_one(inputs, only) ? 0 : 1;
  }

  std::vector<Peak> peaks;
  for (const Input& input : inputs) {
    fmt::print("{}\n", input.name);
    std::fflush(stdout);
    peaks.push_back(peak_of(input));
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
  return is_within && (count == 0 || search(inputs, count)) ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
