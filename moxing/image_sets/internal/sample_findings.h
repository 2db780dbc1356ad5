// Which samples could be read and which could not, for the other ranks of a job: each reads a part of the
// samples, and what may be skipped is a number, and a share of a class, of all.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace mox::data::internal {

struct SampleFinding {
  int64_t index = 0;
  int64_t number = -1;  // its class; negative: not known
  bool is_good = false;
  std::string reason = {};  // why it cannot be read
};

// What SampleFindings::take gave. Throws DataError for what is no such text, and for an index outside of 0 to
// `samples` - 1.
std::vector<SampleFinding> findings_from_text(std::string_view text, int64_t samples);

// Safe from any thread.
class SampleFindings {
 public:
  // Good ones are told where some sample, of any rank, is bad: they matter then alone. Until they are taken,
  // 16 bytes each.
  void add_good(int64_t index, int64_t number);
  // Told once.
  void add_bad(int64_t index, int64_t number, const std::string& reason);
  // Another rank has a bad sample, which it has told all.
  void note_bad_elsewhere(int64_t index);

  // What is new, as text; "" if nothing is.
  std::string take();

 private:
  struct Good {
    int64_t index, number;
  };
  std::mutex mutex_;
  std::set<int64_t> known_bad_;
  std::vector<SampleFinding> bad_;
  std::vector<Good> good_;
};

}  // namespace mox::data::internal
