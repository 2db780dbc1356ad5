// The steps of a training, one after another: takes batches, computes, and agrees with the other ranks on
// when to stop.
#pragma once

#include <optional>
#include <vector>

#include "moxing/engine/session/internal/training/best_values.h"
#include "moxing/engine/session/internal/training/label_mistakes.h"
#include "moxing/engine/session/internal/training/training.h"
#include "moxing/engine/session/internal/training/training_session.h"
#include "moxing/engine/session/internal/training/zero_loss.h"

namespace mox::internal {

class TrainingLoop {
 public:
  TrainingLoop(Training& training, TrainingSession& session);

  // Until something asks to stop, with the hooks around it. Throws the first error, when all
  // hooks have ended.
  void run();

  // Where the time went.
  struct Seconds {
    double data = 0, compute = 0, total = 0;
  };
  const Seconds& seconds() const { return seconds_; }
  // Of log_info's values in each step.
  const BestValues& best_batches() const { return best_batches_; }

 private:
  void steps();
  void take_batches();
  void step();
  void end_of_data();
  void agree();
  void share(const std::string& found);
  void mention_left_out_step() const;

  Training& training_;
  TrainingSession& session_;
  std::vector<Batch> batches_;     // of the next step: one for each logical replica of this process
  std::exception_ptr unreadable_;  // why they could not be taken
  std::vector<std::optional<metrics::Direction>> log_directions_;  // of Session::log_names
  BestValues best_batches_;
  ZeroLoss zero_loss_;
  LabelMistakes label_mistakes_;
  Seconds seconds_;
};

}  // namespace mox::internal
