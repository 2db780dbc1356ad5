// mox launch: a program as a job of several processes, started again from its last checkpoint when it fails.
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Validators.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "moxing/cli/internal/command.h"
#include "moxing/cli/internal/host_slots.h"
#include "moxing/cli/internal/remote_agent.h"
#include "moxing/cli/internal/words.h"
#include "moxing/engine/session/run.h"
#include "runtime/base/error.h"
#include "runtime/text/printable.h"

namespace mox::cli {
namespace {

// exit status of mox::init: another attempt would end in the same way
constexpr int kConfigurationRefused = 2;
constexpr int kProgramNotStarted = 127;
constexpr unsigned kSecondsBetweenAttempts = 1;
// A host that is asked whether it is there answers in this time, or is not.
constexpr unsigned kHostAnswersSeconds = 20;
constexpr size_t kHostsAskedAtOnce = 64;

using Clock = std::chrono::steady_clock;
// mpirun passes nothing on to processes that it has not started yet: while it starts them, which takes its
// time on many hosts, a wish to stop is repeated. (To a run of moxing one SIGUSR1 is as good as several.)
constexpr auto kStartTime = std::chrono::seconds(30), kRepeatTime = std::chrono::seconds(1);

struct LaunchArguments {
  int ranks = 0;
  std::string hosts_file, rank_table;
  int max_restarts = 0;
  std::vector<std::string> program;
};

constexpr int kWishesToStop[] = {SIGINT, SIGTERM, SIGUSR1, SIGHUP};

std::atomic<int> signals_received{0};  // a signal handler reaches nothing but globals
extern "C" void count_signal(int) { signals_received.fetch_add(1); }
extern "C" void wake_up(int) {}

sigset_t signals_before;

// From here on signals come in `wait_for` and `stop_is_asked` alone: none is lost between a look and a wait.
void catch_signals() {
  struct sigaction action {};
  sigemptyset(&action.sa_mask);
  sigset_t held_back;
  sigemptyset(&held_back);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGHUP, SIGCHLD}) {
    action.sa_handler = signal == SIGCHLD ? wake_up : count_signal;
    struct sigaction before {};
    sigaction(signal, &action, &before);
    if (signal == SIGHUP && before.sa_handler == SIG_IGN) sigaction(signal, &before, nullptr);  // nohup
    sigaddset(&held_back, signal);
  }
  sigprocmask(SIG_BLOCK, &held_back, &signals_before);
}

// Whether a signal has come so far.
bool stop_is_asked() {
  sigset_t held_back;
  sigprocmask(SIG_SETMASK, &signals_before, &held_back);
  sigprocmask(SIG_SETMASK, &held_back, nullptr);
  return signals_received.load() > 0;
}

// In a process that was made for it.
[[noreturn]] void become(const std::vector<std::string>& command) {
  for (const int signal : kWishesToStop) {
    struct sigaction before {};
    sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) std::signal(signal, SIG_DFL);
  }
  sigprocmask(SIG_SETMASK, &signals_before, nullptr);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp(words[0], words.data());
  std::fputs(
      fmt::format("mox launch: '{}' could not be started; is it installed?\n", printable(command[0])).c_str(),
      stderr);
  ::_exit(kProgramNotStarted);
}

// The wait status of a child at its end. It gets `first` for the first signal that this process has got,
// again and again until `repeated_until`, and `second` for each further one.
int wait_for(pid_t child, int first, int second, Clock::time_point repeated_until = {}) {
  int status = 0;
  pid_t ended = 0;
  Clock::time_point told;
  for (int passed_on = 0; (ended = ::waitpid(child, &status, WNOHANG)) == 0;) {
    const bool repeats = passed_on == 1 && Clock::now() < repeated_until;
    if (repeats && Clock::now() - told >= kRepeatTime) {
      ::kill(child, first);
      told = Clock::now();
    }
    for (; passed_on < signals_received.load(); ++passed_on) {
      ::kill(child, passed_on == 0 ? first : second);
      told = Clock::now();
    }
    const timespec pause{1, 0};
    ::ppoll(nullptr, 0, passed_on == 1 && Clock::now() < repeated_until ? &pause : nullptr, &signals_before);
  }
  if (ended < 0) throw IoError("the job was lost sight of");
  return status;
}

int stopped_early(std::string_view when) {
  std::fputs(fmt::format("mox launch: the job was stopped {}\n", when).c_str(), stderr);
  return kExitInterrupted;
}

// Runs the command to its end. The first signal that this process gets asks the job to save and to end, which
// mpirun passes on as SIGUSR1 (a SIGTERM it would take for its own); the second one ends it.
int run(const std::vector<std::string>& command) {
  if (stop_is_asked()) return stopped_early("before it was started; the same command starts it");
  const auto started_until = Clock::now() + kStartTime;
  const pid_t child = ::fork();
  if (child < 0) throw IoError("no process could be started");
  if (child == 0) {
    ::setpgid(0, 0);  // Ctrl-C is for the launcher, which knows what to make of it
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (!std::freopen("/dev/null", "r", stdin)) ::_exit(kProgramNotStarted);
    become(command);
  }
  const int wait_status = wait_for(child, SIGUSR1, SIGTERM, started_until);
  const int status = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
  // mpirun that starts, or a process that is in no run of moxing, knows no wish to stop: it has ended.
  const bool is_early = stop_is_asked() && status == 128 + SIGUSR1 && Clock::now() < started_until;
  if (!is_early) return status;
  return stopped_early(
      "while it was started, or a process of it was in no run: what was saved by then is there, and the same "
      "command goes on from it");
}

// Nothing is to be asked, and no sshd need run, where mpirun starts processes without an agent.
bool is_here(const std::string& host) {
  char name[HOST_NAME_MAX + 1] = "";
  if (::gethostname(name, sizeof name) != 0) name[0] = '\0';
  return is_loopback(host) || host == std::string_view(name);
}

// The process that asks a host whether it is there; -1 if there is none.
pid_t ask(const std::string& host) {
  std::vector<std::string> command{"true"};
  if (has_agent_of_environment() || !is_here(host)) {
    command = agent_that_asks();
    command.insert(command.end(), {host, "true"});
  }
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(kHostAnswersSeconds);  // ends the command that this process becomes
    if (!std::freopen("/dev/null", "r", stdin)) ::_exit(kProgramNotStarted);
    become(command);
  }
  return child;
}

// Those of the hosts that are still there. Many are asked at a time: of a rack without power each takes all
// of its time.
std::vector<HostSlots> that_answer(const std::vector<HostSlots>& hosts) {
  std::vector<HostSlots> left;
  for (size_t first = 0; first < hosts.size() && !stop_is_asked(); first += kHostsAskedAtOnce) {
    const size_t end = std::min(hosts.size(), first + kHostsAskedAtOnce);
    std::vector<pid_t> children;
    for (size_t i = first; i < end; ++i) children.push_back(ask(hosts[i].host));
    for (size_t i = first; i < end; ++i) {
      const pid_t child = children[i - first];
      const int status = child < 0 ? -1 : wait_for(child, SIGTERM, SIGKILL);
      if (child >= 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        left.push_back(hosts[i]);
      else if (!stop_is_asked())
        std::fputs(
            fmt::format("mox launch: the host '{}' does not answer and is left out\n", hosts[i].host).c_str(),
            stderr);
    }
  }
  return left;
}

// The hosts as a file for mpirun, there as long as this object. (As words, the mpirun of Open MPI 5 does not
// know its own host by address.)
class HostFile {
 public:
  explicit HostFile(const std::vector<HostSlots>& hosts) {
    // Of an address like 127.0.1.1, as Debian gives a host's own name, mpirun does not know that it is here;
    // and of one host it takes one number of slots.
    std::vector<HostSlots> known;
    for (const HostSlots& entry : hosts) {
      const std::string name = is_loopback(entry.host) ? "localhost" : entry.host;
      const auto same = std::ranges::find(known, name, &HostSlots::host);
      if (same == known.end())
        known.push_back({name, entry.slots});
      else
        same->slots += entry.slots;
    }
    std::string text;
    for (const HostSlots& entry : known) text += fmt::format("{} slots={}\n", entry.host, entry.slots);
    path_ = (std::filesystem::temp_directory_path() / "mox_hosts_").string() + std::string(6, 'X');
    const int file = ::mkstemp(path_.data());
    const bool is_written =
        file >= 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    if (file >= 0) ::close(file);
    if (!is_written) throw IoError(fmt::format("the list of hosts could not be written to '{}'", path_));
  }
  ~HostFile() { ::unlink(path_.c_str()); }
  HostFile(const HostFile&) = delete;
  HostFile& operator=(const HostFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// To mpirun a word that is a colon begins another program: where there is one, a shell gets all words in one.
std::vector<std::string> without_lone_colons(const std::vector<std::string>& program) {
  if (std::ranges::find(program, ":") == program.end()) return program;
  std::string script = "exec";
  for (const std::string& word : program) {
    // Not on the PATH, but here: mpirun would find it, the shell not.
    const bool is_here_alone = &word == &program[0] && !is_program(word) && can_be_run("./" + word);
    script += is_here_alone ? " './" : " '";
    for (const char c : word) script += c == '\'' ? "'\\''" : std::string(1, c);
    script += '\'';
  }
  return {"/bin/sh", "-c", script};
}

// `hosts_file`: "" for this machine.
std::vector<std::string> mpirun_command(const LaunchArguments& arguments, const std::string& hosts_file,
                                        int ranks) {
  // The ranks of a machine share its cores among themselves (docs/distributed.md).
  std::vector<std::string> command = {"mpirun", "-n", std::to_string(ranks), "--bind-to", "none"};
  if (::geteuid() == 0) command.emplace_back("--allow-run-as-root");
  // What starts processes is a program of its own with Open MPI 5 (PRRTE), which does not hear Open MPI's
  // environment, but takes these names as words.
  if (const std::string agent = agent_of_mpirun(); !agent.empty())
    command.insert(command.end(), {"--mca", "plm_rsh_agent", agent});
  if (const std::string network = mpi_parameter("oob_tcp_if_include"); !network.empty())
    command.insert(command.end(), {"--mca", "oob_tcp_if_include", network});
  // mpirun gives rank 0 a terminal of its own, whatever its output goes to.
  if (!::isatty(STDOUT_FILENO)) command.insert(command.end(), {"-x", "NO_COLOR=1"});
  if (hosts_file.empty()) {
    command.emplace_back("--oversubscribe");
  } else {
    command.insert(command.end(), {"--hostfile", hosts_file});
  }
  const std::vector<std::string> program = without_lone_colons(arguments.program);
  command.insert(command.end(), program.begin(), program.end());
  return command;
}

// mpirun's own words for it are of processes and slots. Other hosts may have programs of their own.
void require_program(const std::string& program, const std::vector<HostSlots>& hosts) {
  if (!std::ranges::all_of(hosts, is_loopback, &HostSlots::host)) return;
  std::error_code error;
  if (program.find('/') != std::string::npos) {
    if (can_be_run(program)) return;
    if (!std::filesystem::exists(program, error)) throw NotFound(fmt::format("'{}' does not exist", program));
    throw InvalidArgument(fmt::format("'{}' is no program that this user may run", program));
  }
  if (is_program(program) || can_be_run("./" + program)) return;  // mpirun looks here as well
  throw NotFound(fmt::format("there is no program '{}', neither here nor on the PATH", program));
}

// mpirun starts nothing as root unless it is told to, which is the launcher's doing here.
void say_that_root_is_allowed() {
  const auto is_set = [](const char* name) {
    const char* value = std::getenv(name);
    return value && std::string_view(value) == "1";
  };
  if (::geteuid() != 0 || (is_set("OMPI_ALLOW_RUN_AS_ROOT") && is_set("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")))
    return;
  std::fputs(
      "mox launch: the job runs as root, so mpirun is given --allow-run-as-root; better start it as a "
      "user (OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 say that root is meant)\n",
      stderr);
}

// A list with a mistake is a configuration that is refused.
std::vector<HostSlots> hosts_of(const LaunchArguments& arguments) {
  try {
    if (!arguments.rank_table.empty()) return read_rank_table(arguments.rank_table);
    if (!arguments.hosts_file.empty()) return read_hosts(arguments.hosts_file);
  } catch (const DataError& error) {
    throw ConfigError(error.what());
  }
  return {};
}

int launch(const LaunchArguments& arguments) {
  std::vector<HostSlots> hosts = hosts_of(arguments);
  const int wanted = arguments.ranks > 0 ? arguments.ranks : std::max(1, total_slots(hosts));
  if (!hosts.empty() && wanted > total_slots(hosts))
    throw InvalidArgument(
        fmt::format("{} ranks are asked for, but the hosts have {} slots", wanted, total_slots(hosts)));
  try {
    require_program(arguments.program.at(0), hosts);
  } catch (const Error& error) {
    std::fputs(fmt::format("mox launch: {}\n", printable_message(error.what())).c_str(), stderr);
    return kProgramNotStarted;
  }
  catch_signals();
  say_that_root_is_allowed();
  int ranks = wanted;
  for (int attempt = 0;; ++attempt) {
    std::optional<HostFile> file;
    if (!hosts.empty()) file.emplace(hosts);
    const int status = run(mpirun_command(arguments, file ? file->path() : "", ranks));
    if (status == 0 || status == kExitInterrupted || status == kConfigurationRefused ||
        status == kProgramNotStarted || stop_is_asked() || attempt == arguments.max_restarts)
      return status;
    ::sleep(kSecondsBetweenAttempts);
    std::vector<HostSlots> left = that_answer(hosts);
    if (stop_is_asked()) return status;
    if (!hosts.empty()) {
      ranks = ranks_that_fit(wanted, total_slots(left));
      if (ranks == 0) throw IoError("none of the hosts answers any more");
    }
    std::fputs(fmt::format("mox launch: the job ended with status {}; restart {} of {} with {} ranks\n",
                           status, attempt + 1, arguments.max_restarts, ranks)
                   .c_str(),
               stderr);
    if (!hosts.empty()) hosts = std::move(left);
  }
}

}  // namespace

void add_launch(CLI::App& mox, int* exit_status) {
  CLI::App* command = mox.add_subcommand("launch",
                                         "Run a program as a job of several processes: mox launch -n 4 -- "
                                         "PROGRAM ARGUMENTS. The exit status is that of the job");
  auto arguments = std::make_shared<LaunchArguments>();
  command->add_option("-n", arguments->ranks, "Processes; not given: one for each slot of the hosts")
      ->check(CLI::Range(1, 1 << 20));
  auto* hosts =
      command->add_option("--hosts", arguments->hosts_file,
                          "A file with one host a line: HOST slots=NUMBER, HOST:NUMBER, or a host for "
                          "each rank");
  command
      ->add_option("--rank-table", arguments->rank_table,
                   "The hosts as a rank table of HCCL, JSON; one rank a device")
      ->excludes(hosts);
  command
      ->add_option("--max-restarts", arguments->max_restarts,
                   "How often a job that fails is started again, without the hosts that no longer answer")
      ->check(CLI::Range(0, 1 << 20));
  add_words(*command, "PROGRAM", &arguments->program, "The program and its arguments, after --")->required();
  command->callback([arguments, exit_status] { *exit_status = launch(*arguments); });
}

}  // namespace mox::cli
