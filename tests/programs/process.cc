#include "tests/programs/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include "runtime/base/file.h"
#include "tests/moxing/checkpoint/checkpoint_samples.h"

namespace mox {
namespace {

constexpr std::chrono::microseconds kBetweenLooks{200};
constexpr double kLongestWait = 60;

std::string next_name(const char* stream) {
  static int counter = 0;
  return fresh_directory(std::string(stream) + std::to_string(counter++));
}

void redirect(int descriptor, const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (file < 0 || ::dup2(file, descriptor) < 0) ::_exit(127);
  ::close(file);
}

}  // namespace

double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Process::Process(const std::vector<std::string>& command, const std::string& output)
    : out_path_(next_name("out")), err_path_(next_name("err")), started_(monotonic_seconds()) {
  std::vector<std::string> words = command;
  if (words.at(0).find('/') == std::string::npos) words[0] = MOX_BINARY_DIR "/bin/" + words[0];
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  id_ = ::fork();
  if (id_ < 0) throw std::runtime_error("fork failed");
  if (id_ == 0) {
    redirect(STDIN_FILENO, "/dev/null");
    redirect(STDOUT_FILENO, output.empty() ? out_path_ : output);
    redirect(STDERR_FILENO, err_path_);
    ::signal(SIGPIPE, SIG_DFL);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
}

Process::~Process() {
  if (!running()) return;
  send(SIGKILL);
  ::waitpid(id_, &wait_status_, 0);
}

bool Process::running() {
  if (!reaped_ && ::waitpid(id_, &wait_status_, WNOHANG) == id_) reaped_ = true;
  return !reaped_;
}

void Process::send(int signal) const {
  if (!reaped_) ::kill(id_, signal);
}

bool Process::wait_until(const std::function<bool()>& condition) {
  for (const double start = monotonic_seconds(); monotonic_seconds() - start < kLongestWait;) {
    if (condition()) return true;
    if (!running()) return false;
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return false;
}

bool Process::said(const std::string& text) const {
  for (const std::string& path : {out_path_, err_path_}) {
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored) && read_file(path).find(text) != std::string::npos)
      return true;
  }
  return false;
}

ProcessResult Process::wait(double timeout_seconds) {
  ProcessResult result;
  const double end = monotonic_seconds() + timeout_seconds;
  while (running() && monotonic_seconds() < end) std::this_thread::sleep_for(kBetweenLooks);
  if (running()) {
    result.timed_out = true;
    send(SIGKILL);
    ::waitpid(id_, &wait_status_, 0);
    reaped_ = true;
  }
  result.seconds = monotonic_seconds() - started_;
  if (WIFEXITED(wait_status_)) result.status = WEXITSTATUS(wait_status_);
  if (WIFSIGNALED(wait_status_)) result.signal = WTERMSIG(wait_status_);
  std::error_code ignored;
  if (std::filesystem::exists(out_path_, ignored)) result.out = read_file(out_path_);
  if (std::filesystem::exists(err_path_, ignored)) result.err = read_file(err_path_);
  return result;
}

ProcessResult run_process(const std::vector<std::string>& command, const std::string& output) {
  return Process(command, output).wait();
}

}  // namespace mox
