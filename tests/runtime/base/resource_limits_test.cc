// Limits of control groups, from trees as the kernel, systemd, Docker, Slurm and Kubernetes lay them out.
#include "runtime/base/resource_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "runtime/base/error.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/without_privileges.h"

namespace {

// That the machine may ever get, and of these the ones that this process may use; 0: as it is.
size_t cores_of_kernel = 0, cores_of_process = 0;

}  // namespace

// In the place of the C library's.
extern "C" int sched_getaffinity(pid_t process, size_t bytes, cpu_set_t* mask) noexcept {
  if (bytes * 8 < cores_of_kernel) {
    errno = EINVAL;
    return -1;
  }
  std::memset(mask, 0, bytes);
  for (size_t core = 0; core < cores_of_process; ++core) CPU_SET_S(core, bytes, mask);
  if (cores_of_kernel > 0) return 0;
  return ::syscall(SYS_sched_getaffinity, process, bytes, mask) < 0 ? -1 : 0;
}

namespace mox {
namespace {

constexpr const char* kUnified = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
constexpr const char* kVersionOne =
    "31 30 0:28 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 master:1 - cgroup cgroup rw,cpu,cpuacct\n"
    "33 31 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";

// As a process sees it whose files are below a directory.
class Machine {
 public:
  Machine(const std::string& groups, const std::string& mounts) {
    write("proc/self/cgroup", groups);
    write("proc/self/mountinfo", mounts);
  }
  void write(const std::string& path, const std::string& content) { directory_.write(path, content); }
  void group(const std::string& path, const std::string& content) { write("sys/fs/cgroup/" + path, content); }
  ResourceLimits limits() const { return control_group_limits(directory_.path()); }

 private:
  TemporaryDirectory directory_;
};

TEST(ResourceLimits, OfNestedGroupsTheSmallestCounts) {
  Machine machine("0::/user.slice/session.scope/job\n", kUnified);
  machine.group("user.slice/memory.max", "8589934592\n");
  machine.group("user.slice/cpu.max", "150000 100000\n");
  machine.group("user.slice/session.scope/memory.max", "max\n");
  machine.group("user.slice/session.scope/cpu.max", "max 100000\n");
  machine.group("user.slice/session.scope/job/memory.max", "17179869184\n");
  machine.group("user.slice/session.scope/job/cpu.max", "400000 100000\n");
  EXPECT_EQ(machine.limits().memory_bytes, 8589934592U);
  EXPECT_EQ(machine.limits().cores, 1.5);
  machine.group("user.slice/session.scope/memory.high", "4294967296\n");  // above it, the kernel holds it up
  EXPECT_EQ(machine.limits().memory_bytes, 4294967296U);
}

TEST(ResourceLimits, NoneIsSet) {
  Machine machine("0::/\n", kUnified);
  EXPECT_FALSE(machine.limits().memory_bytes);
  EXPECT_FALSE(machine.limits().cores);
  machine.group("memory.max", "max\n");
  machine.group("cpu.max", "max 100000\n");
  EXPECT_FALSE(machine.limits().memory_bytes);
  EXPECT_FALSE(machine.limits().cores);
  const TemporaryDirectory empty;
  EXPECT_FALSE(control_group_limits(empty.path()).memory_bytes);
}

TEST(ResourceLimits, OfVersionOneWithControllersOfTheirOwn) {
  Machine machine("9:cpu,cpuacct:/slurm/uid_0/job_7\n8:memory:/slurm/uid_0/job_7/step_0\n0::/x\n",
                  kVersionOne);
  machine.group("memory/slurm/uid_0/job_7/step_0/memory.limit_in_bytes", "9223372036854771712\n");
  machine.group("memory/slurm/uid_0/job_7/memory.limit_in_bytes", "2147483648\n");
  machine.group("memory/memory.limit_in_bytes", "9223372036854771712\n");
  machine.group("cpu,cpuacct/slurm/uid_0/job_7/cpu.cfs_quota_us", "-1\n");
  machine.group("cpu,cpuacct/slurm/uid_0/job_7/cpu.cfs_period_us", "100000\n");
  machine.group("cpu,cpuacct/slurm/cpu.cfs_quota_us", "40000\n");
  machine.group("cpu,cpuacct/slurm/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(machine.limits().memory_bytes, 2147483648U);
  EXPECT_EQ(machine.limits().cores, 0.4);
}

// Docker without a namespace of groups: the process is in /docker/ID, and that is what is mounted.
TEST(ResourceLimits, OfAContainerThatSeesItsHostsNames) {
  Machine machine("8:memory:/docker/3f2a\n0::/docker/3f2a\n",
                  "33 31 0:30 /docker/3f2a /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
                  "34 31 0:31 /docker/3f2a /sys/fs/cgroup/uni\\040fied ro - cgroup2 cgroup rw\n");
  machine.group("memory/memory.limit_in_bytes", "1073741824\n");
  machine.group("uni fied/cpu.max", "50000 100000\n");
  EXPECT_EQ(machine.limits().memory_bytes, 1073741824U);
  EXPECT_EQ(machine.limits().cores, 0.5);
}

// The groups above a container of version 1 cannot be seen; its statistics tell what they allow.
TEST(ResourceLimits, OfGroupsAboveAContainer) {
  Machine machine("8:memory:/\n", kVersionOne);
  machine.group("memory/memory.limit_in_bytes", "9223372036854771712\n");
  machine.group("memory/memory.stat", "cache 0\nhierarchical_memory_limit 3221225472\n");
  EXPECT_EQ(machine.limits().memory_bytes, 3221225472U);
}

TEST(ResourceLimits, OfAGroupOutsideOfItsNamespace) {
  Machine machine("0::/../../other\n", kUnified);
  machine.group("memory.max", "1073741824\n");
  EXPECT_EQ(machine.limits().memory_bytes, 1073741824U);
}

TEST(ResourceLimits, ThatAreNoNumbersAreNone) {
  Machine machine("0::/a\nnonsense\n:\n", std::string("nonsense\n\n1 2 3 4 5 6 -\n") + kUnified);
  machine.group("a/memory.max", "many\n");
  machine.group("a/cpu.max", "100000 0\n");
  machine.group("cpu.max", "0 100000\n");
  machine.group("memory.max", "99999999999999999999999999\n");
  EXPECT_FALSE(machine.limits().memory_bytes);
  EXPECT_FALSE(machine.limits().cores);
}

TEST(ResourceLimits, OfThisProcess) {
  EXPECT_GE(available_cores(), 1);
  EXPECT_GE(machine_memory(), size_t{1} << 20);
}

// cpu_set_t has 1024 bits, and the kernel takes no mask that is smaller than its own.
TEST(ResourceLimits, OfAKernelForMoreCoresThanAMaskHas) {
  const auto quota = control_group_limits().cores;  // of the machine that runs the tests
  const auto allowed = [&](int cores) {
    return quota ? std::min(cores, static_cast<int>(std::ceil(*quota))) : cores;
  };
  for (const size_t cores : {1024, 1025, 2048, 8192}) {
    cores_of_kernel = cores_of_process = cores;
    EXPECT_EQ(available_cores(), allowed(static_cast<int>(cores)));
    cpu_set_t mask;
    const auto bytes = std::as_writable_bytes(std::span(&mask, 1));
    EXPECT_EQ(affinity_of_thread(bytes), cores == 1024) << cores;
    cores_of_process = 3;
    EXPECT_EQ(available_cores(), allowed(3));
    EXPECT_TRUE(affinity_of_thread(bytes));
    EXPECT_EQ(CPU_COUNT(&mask), 3);
  }
  cores_of_kernel = size_t{1} << 30;
  EXPECT_EQ(available_cores(), allowed(static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN))))
      << "more than are asked for";
  cores_of_kernel = 0;
}

TEST(ThreadsGiven, AreAllThatAreWanted) {
  for (const int wanted : {-1, 0, 1, 5}) {
    const GivenThreads given = threads_given(wanted);
    EXPECT_EQ(given.count, std::max(wanted, 0));
    EXPECT_EQ(given.refusal, "");
  }
}

TEST(ThreadsGiven, AreThoseThatTheSystemDoesNotRefuse) {
  EXPECT_THAT(message_without_privileges<Error>([] {
                const rlimit few{.rlim_cur = 3, .rlim_max = 3};
                ::setrlimit(RLIMIT_NPROC, &few);
                const GivenThreads given = threads_given(8);
                throw InvalidArgument(std::to_string(given.count < 3) + " " + given.refusal);
              }),
              testing::StartsWith("1 Resource temporarily unavailable"));
}

}  // namespace
}  // namespace mox
