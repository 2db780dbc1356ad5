// Output into a pipe that nobody reads any more.
#pragma once

namespace mox::internal {

// While alive, writing into such a pipe is an error of that write and not the end of the process: a training
// whose output goes to `head` or to a terminal session that has gone must not be lost. A program that has
// chosen its own way to handle SIGPIPE keeps it. One at a time.
class SurviveBrokenPipe {
 public:
  SurviveBrokenPipe();
  ~SurviveBrokenPipe();
  SurviveBrokenPipe(const SurviveBrokenPipe&) = delete;
  SurviveBrokenPipe& operator=(const SurviveBrokenPipe&) = delete;

 private:
  bool changed_ = false;
};

}  // namespace mox::internal
