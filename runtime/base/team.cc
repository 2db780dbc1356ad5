#include "runtime/base/team.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
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

// libgomp synchronises with futexes that ThreadSanitizer cannot see; these tell it what the fork and
// the join order.
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

// Few enough for a piece's start to cost nothing, enough for the last pieces to keep nobody waiting for long.
constexpr int kPiecesPerThread = 16;

// An end of a range.
enum class From { kFirst, kLast };

struct Region {
  FunctionRef<void(int, int)>* body;
  std::atomic_flag has_failed = {};
  std::exception_ptr failure = {};  // of the first that has failed

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

// body(thread, threads) on every thread of a pool of `threads`. It must not throw; what a program's own
// kernel throws all the same is an error of the run: it leaves neither a thread of libgomp nor, before these
// are through, this function.
void fork_join(int threads, FunctionRef<void(int, int)> body) {
  Region region{.body = &body};
  region.publish();
  GOMP_parallel(
      [](void* data) {
        auto* r = static_cast<Region*>(data);
        r->observe();
        try {
          (*r->body)(omp_get_thread_num(), omp_get_num_threads());
        } catch (...) {
          if (!r->has_failed.test_and_set()) r->failure = std::current_exception();
        }
        r->publish();
      },
      &region, static_cast<unsigned>(threads), 0);
  region.observe();
  if (region.failure) std::rethrow_exception(region.failure);
}

// Pieces [first, last) that nobody has taken, as one number: 32 bits each.
class Range {
 public:
  void set(int64_t first, int64_t last) { packed_.store(pack(first, last), std::memory_order_relaxed); }
  int64_t left() const {
    const uint64_t now = packed_.load(std::memory_order_relaxed);
    return last_of(now) - first_of(now);
  }
  // A piece from one of the ends, or -1.
  int64_t take(From end) {
    uint64_t now = packed_.load(std::memory_order_relaxed);
    for (;;) {
      const int64_t first = first_of(now), last = last_of(now);
      if (first >= last) return -1;
      const bool at_first = end == From::kFirst;
      const uint64_t rest = at_first ? pack(first + 1, last) : pack(first, last - 1);
      if (packed_.compare_exchange_weak(now, rest, std::memory_order_relaxed))
        return at_first ? first : last - 1;
    }
  }

 private:
  static uint64_t pack(int64_t first, int64_t last) {
    return static_cast<uint64_t>(last) << 32 | static_cast<uint64_t>(first);
  }
  static int64_t first_of(uint64_t packed) { return packed & 0xffffffff; }
  static int64_t last_of(uint64_t packed) { return packed >> 32; }

  alignas(64) std::atomic<uint64_t> packed_;  // in a cache line of its own
};

// body(thread, begin, end) for the pieces of [0, count). A thread takes those of its range from one end, then
// of the range with the most left those at the other end.
void share_out(int threads, int64_t count, int64_t grain, From own_end,
               FunctionRef<void(int, int64_t, int64_t)> body) {
  constexpr int kMostRanges = 64;  // larger teams share them
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  const int64_t pieces =
      threads == 1 ? 1 : std::min<int64_t>(threads * kPiecesPerThread, (count + grain - 1) / grain);
  if (pieces == 1) {
    body(0, 0, count);
    return;
  }
  const int ranges = static_cast<int>(std::min<int64_t>({threads, pieces, kMostRanges}));
  std::array<Range, kMostRanges> shares;
  for (int i = 0; i < ranges; ++i) shares[i].set(pieces * i / ranges, pieces * (i + 1) / ranges);
  // The whole team, also for fewer pieces: what a smaller one does not need libgomp sends home, and makes
  // anew for the next. It may give fewer threads than asked for; those that it gives take the ranges of the
  // others. Of more threads than pieces the last ones have nothing to do: bodies have memory for each thread
  // that gets a piece.
  fork_join(threads, [&](int thread, int) {
    if (thread >= pieces) return;
    const auto run = [&](int64_t piece) {
      body(thread, count * piece / pieces, count * (piece + 1) / pieces);
    };
    Range& own = shares[thread % ranges];
    for (int64_t piece = own.take(own_end); piece >= 0; piece = own.take(own_end)) run(piece);
    const From far_end = own_end == From::kFirst ? From::kLast : From::kFirst;
    for (;;) {
      Range* fullest = std::max_element(shares.begin(), shares.begin() + ranges,
                                        [](const Range& a, const Range& b) { return a.left() < b.left(); });
      const int64_t piece = fullest->take(far_end);
      if (piece >= 0) {
        run(piece);
      } else if (std::all_of(shares.begin(), shares.begin() + ranges,
                             [](const Range& range) { return range.left() <= 0; })) {
        return;
      }
    }
  });
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
  share_out(threads_, count, grain, From::kFirst, [&](int, int64_t begin, int64_t end) { body(begin, end); });
}

void Team::parallel_for_backwards(int64_t count, int64_t grain,
                                  FunctionRef<void(int64_t, int64_t)> body) const {
  share_out(threads_, count, grain, From::kLast, [&](int, int64_t begin, int64_t end) { body(begin, end); });
}

void Team::parallel_for_by_thread(int64_t count, int64_t grain,
                                  FunctionRef<void(int, int64_t, int64_t)> body) const {
  share_out(threads_, count, grain, From::kFirst, body);
}

void Team::on_each_thread(FunctionRef<void()> body) const {
  fork_join(threads_, [&](int, int) { body(); });
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

}  // namespace mox
