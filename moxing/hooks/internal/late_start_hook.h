// A hook that is ready for evaluations before its turn: one that comes earlier may evaluate in its own
// after_create_session.
#pragma once

#include <utility>

#include "moxing/hooks/hook.h"

namespace mox::internal {

class LateStartHook : public TrainingHook {
 public:
  // What comes before after_create_session belongs to the run that begins.
  void begin(ModelBuild&) override {
    if (!is_running_) is_started_ = false;
  }
  void after_create_session(Session& session) override {
    is_running_ = true;
    start_once(session);
  }
  void after_evaluation(Session& session, const Metrics& metrics) override {
    start_once(session);
    add(session, metrics);
  }
  void end(Session&) override { is_running_ = false; }

 protected:
  virtual void start(Session& session) = 0;  // once a run, before the first `add`
  virtual void add(Session& session, const Metrics& metrics) = 0;

 private:
  void start_once(Session& session) {
    if (!std::exchange(is_started_, true)) start(session);
  }

  bool is_running_ = false, is_started_ = false;
};

}  // namespace mox::internal
