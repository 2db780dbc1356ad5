// The share of each class that is skipped because its images cannot be read: above a limit, a network would
// learn, or be measured on, other classes than the data have.
//
// The samples of all ranks count: what others have met comes through RandomAccessSource::add_findings.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace mox::data::internal {

// Safe from any thread.
class SkippedShare {
 public:
  // `class_sizes`: of the classes 0, 1, ..., or empty if they are known only by reading. Then a class is
  // judged when all `samples` have been met, or when kTelling of it are bad. `class_names`: for messages; a
  // class beyond them has its number.
  SkippedShare(int64_t samples, std::vector<int64_t> class_sizes, std::vector<std::string> class_names,
               double limit);

  static constexpr int64_t kTelling = 20;

  // Sample `index`, of class `number`, was read. Throws DataError as `add_bad` does. Whether this is news: it
  // counts, and was not met before.
  bool add_good(int64_t index, int64_t number);
  // It cannot be read; of its classes a number is negative where it is not known. Throws DataError when more
  // than the limit of a class are bad, then for each that is met again, too: the first error may be that of a
  // batch which was read ahead and is never asked for.
  void add_bad(int64_t index, std::span<const int32_t> numbers, const std::string& reason);

 private:
  struct Count {
    int64_t good = 0, bad = 0;
    std::string first_reason = {};
  };

  bool is_new(int64_t index);
  void judge(int64_t number) const;
  void judge_all() const;

  std::mutex mutex_;
  int64_t samples_;
  std::vector<int64_t> sizes_;
  std::vector<std::string> names_;
  double limit_;
  std::vector<bool> met_;
  int64_t number_met_ = 0;
  std::map<int64_t, Count> counts_;
};

}  // namespace mox::data::internal
