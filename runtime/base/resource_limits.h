// What the machine gives to this process: the limits of its control groups, which a container, a batch system
// or systemd sets, and its own (ulimit), beside what the machine has.
//
// Both versions of cgroups are read, and all groups from the process's own up to the one that is mounted: the
// smallest limit counts, since each of them holds for all that lie below.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace mox {

struct ResourceLimits {
  std::optional<size_t> memory_bytes;  // memory.max, memory.high; memory.limit_in_bytes of version 1
  std::optional<double> cores;         // cpu.max; cpu.cfs_quota_us / cpu.cfs_period_us of version 1
};

// The limits of this process's groups; nothing where none is set. What cannot be read counts as no limit.
// `root` stands before every path that is read (/proc/self/cgroup, /proc/self/mountinfo, the groups): a test
// lays out a tree of its own there.
ResourceLimits control_group_limits(const std::string& root = "");

// Bytes of memory that the machine has.
size_t machine_memory();
// The bytes that ulimit lets this process alone have: of addresses (-v) or of data (-d), whichever is less;
// nothing where neither is limited.
std::optional<size_t> process_memory_limit();
// Bytes of memory that this process may have: the machine's, or the limit of its groups or its own if
// that is less.
size_t available_memory();

// Asks for huge pages, of those of 2 MiB that lie whole within this memory, which nobody has used yet: to get
// the usual ones from the system takes longer than to fill them. A system that has none gives those.
void ask_for_huge_pages(void* memory, size_t bytes);

// The affinity mask of the calling thread in `mask`, the bytes of a cpu_set_t. False where the system does
// not say it, or one of the cores has a number beyond these bytes (cpu_set_t has 1024).
bool affinity_of_thread(std::span<std::byte> mask);

// The cores that this process may use: its affinity mask, cut by the quota of its groups (1.5 cores are 2
// threads, one of which waits now and then). At least 1.
int available_cores();

// Threads that the system gives when it is asked.
struct GivenThreads {
  int count = 0;
  std::string refusal;  // why there are no more; "" if there are as many as were wanted
};
// How many of `wanted` threads can be there at once, beside those that there are. They have ended when it
// returns. libgomp ends the process, and oneTBB an unguarded thread, where one of theirs is refused: so who
// has them start threads asks first.
GivenThreads threads_given(int wanted);

}  // namespace mox
