#include "runtime/base/resource_limits.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <latch>
#include <new>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

namespace mox {
namespace {

// Of a file of the kernel's, which has no size of its own; "" if there is none.
std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::string> split(std::string_view text, std::string_view separators) {
  std::vector<std::string> words;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find_first_of(separators, begin), text.size());
    if (end > begin) words.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

// "max", "-1" and what is no number are no limit.
std::optional<uint64_t> number_in(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = end == text.data() + text.size() || *end == '\n' || *end == ' ';
  if (error != std::errc() || end == text.data() || !is_whole) return std::nullopt;
  return number;
}

// mountinfo writes the blank, the tab, the line's end and the backslash of a path as three octal digits.
std::string unescaped(const std::string& path) {
  std::string result;
  for (size_t i = 0; i < path.size(); ++i) {
    const bool is_escape =
        path[i] == '\\' && path.size() - i > 3 && path.find_first_not_of("01234567", i + 1) >= i + 4;
    if (!is_escape) {
      result += path[i];
      continue;
    }
    result += static_cast<char>((path[i + 1] - '0') * 64 + (path[i + 2] - '0') * 8 + (path[i + 3] - '0'));
    i += 3;
  }
  return result;
}

bool has_word(const std::vector<std::string>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// Where a hierarchy of groups is mounted, and which of its groups lies there.
struct Mount {
  std::string path, group;
};

// Of the hierarchy of version 2 (`controller` empty), or that of a controller of version 1.
std::vector<Mount> mounts_of(const std::string& controller, const std::string& root) {
  std::vector<Mount> mounts;
  for (const std::string& line : split(content_of(root + "/proc/self/mountinfo"), "\n")) {
    const std::vector<std::string> words = split(line, " ");
    // id, parent, device, group, path, options, any number of tags, "-", type, source, options of the type
    const auto dash = std::ranges::find(words, "-");
    if (words.size() < 6 || words.end() - dash < 4) continue;
    const bool is_it = controller.empty() ? dash[1] == "cgroup2"
                                          : dash[1] == "cgroup" && has_word(split(dash[3], ","), controller);
    if (is_it) mounts.push_back({unescaped(words[4]), unescaped(words[3])});
  }
  // Where the table says nothing, as with some sandboxes.
  mounts.push_back({controller.empty() ? "/sys/fs/cgroup" : "/sys/fs/cgroup/" + controller, "/"});
  return mounts;
}

// The group of this process in that hierarchy, as /proc/self/cgroup names it; "/" if it does not.
std::string group_of(const std::string& controller, const std::string& root) {
  for (const std::string& line : split(content_of(root + "/proc/self/cgroup"), "\n")) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (controller.empty() ? controllers.empty() : has_word(split(controllers, ","), controller))
      return line.substr(second + 1);
  }
  return "/";
}

// The directories of the process's group and of those above it, as far as they can be seen.
std::vector<std::string> directories(const std::string& controller, const std::string& root) {
  std::vector<std::string> result;
  const std::string group = group_of(controller, root);
  for (const Mount& mount : mounts_of(controller, root)) {
    std::string below;  // the group within the mount, "" for the one that is mounted
    if (mount.group == "/") {
      below = group;
    } else if (group.starts_with(mount.group + '/')) {
      below = group.substr(mount.group.size());
    }
    // A container that names its groups as its host sees them has only what is mounted. So has one whose path
    // leads out of its namespace ("/..").
    if (below.find("/..") != std::string::npos) below.clear();
    while (!below.empty() && below.back() == '/') below.pop_back();
    for (;; below.resize(below.rfind('/'))) {
      result.push_back(root + mount.path + below);
      if (below.empty() || below.find('/') == std::string::npos) break;
    }
  }
  return result;
}

template <typename T>
void take_smaller(std::optional<T>* limit, std::optional<T> other) {
  if (other && *other > 0 && (!*limit || *other < **limit)) *limit = other;
}

// Version 1 tells a group without access to those above what they allow, in a line of its statistics.
std::optional<uint64_t> hierarchical_memory_limit(const std::string& directory) {
  constexpr std::string_view kName = "hierarchical_memory_limit ";
  for (const std::string& line : split(content_of(directory + "/memory.stat"), "\n"))
    if (line.starts_with(kName)) return number_in(std::string_view(line).substr(kName.size()));
  return std::nullopt;
}

constexpr size_t kMostMasks = 256;         // of cpu_set_t: 262,144 cores
constexpr int kWaitsForEndedThreads = 50;  // of a millisecond

// A thread that was joined still counts for the system until it has gone, a moment later.
void wait_until_gone(pid_t thread) {
  const std::string path = "/proc/self/task/" + std::to_string(thread);
  for (int i = 0; i < 1000 && ::access(path.c_str(), F_OK) == 0; ++i) ::usleep(1000);
}

// Of the calling thread, one after the other; empty where the system does not say. The kernel refuses a mask
// that is smaller than its own, which has a bit for each core that the machine may ever get: on some more
// than the 1024 of cpu_set_t.
std::vector<cpu_set_t> affinity_masks() {
  std::vector<cpu_set_t> masks(1);
  for (; masks.size() <= kMostMasks; masks.resize(2 * masks.size())) {
    if (sched_getaffinity(0, masks.size() * sizeof(cpu_set_t), masks.data()) == 0) return masks;
    if (errno != EINVAL) break;
  }
  return {};
}

int cores_of_affinity() {
  int cores = 0;
  const std::vector<cpu_set_t> masks = affinity_masks();
  for (const cpu_set_t& mask : masks) cores += CPU_COUNT(&mask);
  return std::max(1, masks.empty() ? static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)) : cores);
}

std::optional<double> quotient(std::optional<uint64_t> quota, std::optional<uint64_t> period) {
  if (!quota || !period || *period == 0) return std::nullopt;
  return static_cast<double>(*quota) / *period;
}

}  // namespace

ResourceLimits control_group_limits(const std::string& root) {
  std::optional<uint64_t> memory;
  std::optional<double> cores;
  for (const std::string& directory : directories("", root)) {
    take_smaller(&memory, number_in(content_of(directory + "/memory.max")));
    take_smaller(&memory, number_in(content_of(directory + "/memory.high")));
    const std::vector<std::string> quota = split(content_of(directory + "/cpu.max"), " \n");
    if (quota.size() == 2) take_smaller(&cores, quotient(number_in(quota[0]), number_in(quota[1])));
  }
  for (const std::string& directory : directories("memory", root)) {
    take_smaller(&memory, number_in(content_of(directory + "/memory.limit_in_bytes")));
    take_smaller(&memory, hierarchical_memory_limit(directory));
  }
  for (const std::string& directory : directories("cpu", root))
    take_smaller(&cores, quotient(number_in(content_of(directory + "/cpu.cfs_quota_us")),
                                  number_in(content_of(directory + "/cpu.cfs_period_us"))));
  // Version 1 says "none" as the largest number of whole pages.
  if (memory && *memory >= uint64_t{1} << 62) memory.reset();
  return {.memory_bytes = memory, .cores = cores};
}

size_t machine_memory() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGE_SIZE);
  return pages > 0 && page > 0 ? static_cast<size_t>(pages) * page : size_t{4} << 30;
}

std::optional<size_t> process_memory_limit() {
  std::optional<size_t> limit;
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit given{};
    if (::getrlimit(resource, &given) == 0 && given.rlim_cur != RLIM_INFINITY)
      take_smaller(&limit, std::optional<size_t>(given.rlim_cur));
  }
  return limit;
}

size_t available_memory() {
  std::optional<size_t> memory = machine_memory();
  take_smaller(&memory, control_group_limits().memory_bytes);
  take_smaller(&memory, process_memory_limit());
  return *memory;
}

void ask_for_huge_pages(void* memory, size_t bytes) {
  constexpr uintptr_t kHugePage = uintptr_t{2} << 20;
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t first = (begin + kHugePage - 1) / kHugePage * kHugePage;
  const uintptr_t end = (begin + bytes) / kHugePage * kHugePage;
  if (first < end) ::madvise(static_cast<std::byte*>(memory) + (first - begin), end - first, MADV_HUGEPAGE);
}

bool affinity_of_thread(std::span<std::byte> mask) {
  const std::vector<cpu_set_t> masks = affinity_masks();
  const auto bytes = std::as_bytes(std::span(masks));
  if (bytes.size() < mask.size()) return false;
  std::ranges::copy(bytes.first(mask.size()), mask.begin());
  return std::ranges::all_of(bytes.subspan(mask.size()),
                             [](std::byte others) { return others == std::byte{}; });
}

int available_cores() {
  int cores = cores_of_affinity();
  if (const std::optional<double> quota = control_group_limits().cores)
    cores = std::clamp(static_cast<int>(std::ceil(std::min(*quota, 1e6))), 1, cores);
  return cores;
}

GivenThreads threads_given(int wanted) {
  GivenThreads given;
  std::vector<std::thread> asked;
  std::vector<pid_t> numbers(std::max(wanted, 0));
  std::latch done(1);
  asked.reserve(numbers.size());
  const auto ask_for_one = [&] {
    given.refusal.clear();
    try {
      asked.emplace_back([&done, &number = numbers[asked.size()]] {
        number = ::gettid();
        done.wait();
      });
    } catch (const std::system_error& error) {
      given.refusal = error.code().message();
    } catch (const std::bad_alloc&) {
      given.refusal = "there is no memory for it";
    }
    return given.refusal.empty();
  };
  // Threads of a pool that was given up a moment ago, which nobody joins, may still count.
  for (int waits = 0; asked.size() < numbers.size();) {
    if (ask_for_one()) continue;
    if (++waits > kWaitsForEndedThreads) break;
    ::usleep(1000);
  }
  done.count_down();
  given.count = asked.size();
  for (std::thread& thread : asked) thread.join();
  numbers.resize(asked.size());
  for (const pid_t number : numbers) wait_until_gone(number);
  return given;
}

}  // namespace mox
