#include "runtime/base/team.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

#include "runtime/base/error.h"

// libgomp's entry points, declared here rather than reached through `#pragma omp`: clang (used for the
// sanitizer builds) would lower the pragma to its own OpenMP runtime, and the process would hold two thread
// pools beside each other.
extern "C" {
void GOMP_parallel(void (*body)(void*), void* data, unsigned num_threads, unsigned flags);
int omp_get_thread_num(void);
int omp_get_num_threads(void);
int omp_get_max_threads(void);
void omp_set_num_threads(int);
}

// libgomp synchronises with futexes that ThreadSanitizer cannot see; these tell it what the fork and the join
// order.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MOX_THREAD_SANITIZER 1
extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}
#endif
#endif

namespace mox {
namespace {

struct Region {
  FunctionRef<void(int, int)>* body;

  void publish() {
#ifdef MOX_THREAD_SANITIZER
    __tsan_release(this);
#endif
  }
  void observe() {
#ifdef MOX_THREAD_SANITIZER
    __tsan_acquire(this);
#endif
  }
};

// body(thread, threads) on every thread of a pool of `threads`.
void fork_join(int threads, FunctionRef<void(int, int)> body) {
  Region region{&body};
  region.publish();
  GOMP_parallel(
      [](void* data) {
        auto* r = static_cast<Region*>(data);
        r->observe();
        (*r->body)(omp_get_thread_num(), omp_get_num_threads());
        r->publish();
      },
      &region, static_cast<unsigned>(threads), 0);
  region.observe();
}

}  // namespace

Team::Team(int threads) : threads_(threads) {
  if (threads < 1) throw InvalidArgument("a team needs at least one thread, got " + std::to_string(threads));
}

void Team::enter() const { omp_set_num_threads(threads_); }

int entered_threads() { return omp_get_max_threads(); }

EnteredTeam::EnteredTeam(const Team& team) : previous_(entered_threads()) { team.enter(); }
EnteredTeam::~EnteredTeam() { omp_set_num_threads(previous_); }

void Team::parallel_for(int64_t count, int64_t grain, FunctionRef<void(int64_t, int64_t)> body) const {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  const int64_t chunks = std::min<int64_t>(threads_, (count + grain - 1) / grain);
  if (chunks <= 1) {
    body(0, count);
    return;
  }
  fork_join(static_cast<int>(chunks), [&](int thread, int threads) {
    // libgomp may give fewer threads than asked for, so the share follows what it gave.
    const int64_t begin = count * thread / threads, end = count * (thread + 1) / threads;
    if (begin < end) body(begin, end);
  });
}

void Team::parallel_chunks(int64_t count, int64_t chunk,
                           FunctionRef<void(int64_t, int64_t, int64_t)> body) const {
  MOX_ASSERT(chunk > 0, "a chunk has at least one element");
  const int64_t chunks = (count + chunk - 1) / chunk;
  parallel_for(chunks, 1, [&](int64_t first, int64_t last) {
    for (int64_t index = first; index < last; ++index)
      body(index, index * chunk, std::min(count, (index + 1) * chunk));
  });
}

int available_cores() {
  cpu_set_t mask;
  int cores = 1;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) cores = std::max(1, CPU_COUNT(&mask));
  std::ifstream quota_file("/sys/fs/cgroup/cpu.max");  // cgroup v2: "<quota|max> <period>", in microseconds
  std::string quota;
  double period = 0;
  if (quota_file >> quota >> period && quota != "max" && period > 0) {
    const int allowed = static_cast<int>(std::ceil(std::strtod(quota.c_str(), nullptr) / period));
    if (allowed >= 1) cores = std::min(cores, allowed);
  }
  return cores;
}

}  // namespace mox
