// Chooses the number of threads of a pipeline by trying: as few as keep the consumer from waiting.
//
// It begins with one. As long as the consumer waits for more than kTolerableWait of the time it tries twice
// as many, up to the most that it may use; threads that do not make the consumer faster by kWorthwhile are
// given back, since they take cores from it. Then the choice is final. Pure arithmetic: what it
// is told decides.
#pragma once

#include <string>

namespace mox::data::internal {

class ThreadTuner {
 public:
  static constexpr double kTolerableWait = 0.03, kWorthwhile = 0.05;

  explicit ThreadTuner(int most) : most_(most) {}

  int most() const { return most_; }
  int threads() const { return threads_; }
  bool settled() const { return settled_; }

  // What was measured with threads(): of the consumer's time for a batch, how much it waited. Returns whether
  // threads() changed. Not to be called once settled.
  bool observe(double seconds_per_batch, double wait_share);

  // What was measured, in words: "waited 41 % of 52 ms a batch with 1, 2 % of 31 ms with 2".
  const std::string& history() const { return history_; }

 private:
  int most_, threads_ = 1;
  int before_ = 0;  // the number before the last change, and the time of a batch with it
  double seconds_before_ = 0;
  bool settled_ = false;
  std::string history_;
};

}  // namespace mox::data::internal
