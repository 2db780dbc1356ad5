#include "moxing/cli/internal/remote_agent.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace mox::cli {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::vector<std::string> split_words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::string agents_of_environment() {
  const std::string agents = mpi_parameter("plm_rsh_agent");
  return agents.empty() ? environment("PRTE_MCA_plm_ssh_agent") : agents;
}

std::string arguments_of_environment() {
  const std::string arguments = mpi_parameter("plm_rsh_args");
  return arguments.empty() ? environment("PRTE_MCA_plm_ssh_args") : arguments;
}

// Of several, as in Open MPI's own "ssh : rsh", the first that is there.
std::vector<std::string> remote_agent() {
  std::vector<std::string> first;
  std::istringstream alternatives(agents_of_environment());
  for (std::string agent; std::getline(alternatives, agent, ':');) {
    std::vector<std::string> command = split_words(agent);
    if (command.empty()) continue;
    if (is_program(command[0])) return command;
    if (first.empty()) first = std::move(command);
  }
  return first.empty() ? std::vector<std::string>{"ssh"} : first;
}

bool is_ssh(const std::vector<std::string>& agent) {
  return std::filesystem::path(agent[0]).filename() == "ssh";
}

// Options of ssh have no case.
std::vector<std::string> without_questions(std::vector<std::string> agent) {
  std::string own = fmt::format("{} {}", fmt::join(agent, " "), arguments_of_environment());
  std::ranges::transform(own, own.begin(), [](unsigned char c) { return std::tolower(c); });
  if (own.find("batchmode") == std::string::npos) agent.insert(agent.end(), {"-o", "BatchMode=yes"});
  if (own.find("connecttimeout") == std::string::npos) agent.insert(agent.end(), {"-o", "ConnectTimeout=10"});
  return agent;
}

// False also for a file that is not there.
bool names_an_agent(const std::string& path) {
  std::istringstream file;
  try {
    file.str(read_file(path));
  } catch (const Error&) {
    return false;
  }
  for (std::string line; std::getline(file, line);) {
    const std::string name = line.substr(0, line.find('='));
    const size_t begin = name.find_first_not_of(" \t");
    if (begin != std::string::npos && name[begin] != '#' &&
        (name.find("rsh_agent") != std::string::npos || name.find("ssh_agent") != std::string::npos))
      return true;
  }
  return false;
}

// Open MPI's files of parameters: those of Debian's and Red Hat's packages, those beside the mpirun that is
// found, as of one that was built here, and those that the environment names.
std::vector<std::string> parameter_files() {
  const std::string home = environment("HOME");
  std::vector<std::string> files{home + "/.openmpi/mca-params.conf", home + "/.prte/mca-params.conf",
                                 "/etc/openmpi/openmpi-mca-params.conf", "/etc/prte/prte-mca-params.conf",
                                 "/etc/openmpi-x86_64/openmpi-mca-params.conf"};
  if (const std::string mpirun = path_of_program("mpirun"); !mpirun.empty()) {
    std::error_code error;
    const auto folder = std::filesystem::canonical(mpirun, error).parent_path().parent_path() / "etc";
    for (const char* name : {"openmpi-mca-params.conf", "prte-mca-params.conf"})
      files.push_back((folder / name).string());
  }
  std::istringstream named(mpi_parameter("mca_base_param_files"));
  for (std::string file; std::getline(named, file, ',');)
    if (!file.empty()) files.push_back(file);
  return files;
}

// Files of parameters and schedulers with agents of their own: a word of ours would come before theirs.
bool is_named_elsewhere() {
  for (const char* scheduler :
       {"PE_HOSTFILE", "LOADL_STEP_ID", "OMPI_MCA_orte_rsh_agent", "OMPI_MCA_pls_rsh_agent"})
    if (!environment(scheduler).empty()) return true;
  return std::ranges::any_of(parameter_files(), names_an_agent);
}

}  // namespace

bool can_be_run(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

std::string path_of_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return can_be_run(name) ? name : "";
  const char* path = std::getenv("PATH");
  std::istringstream directories(path ? path : "/usr/bin:/bin");
  for (std::string directory; std::getline(directories, directory, ':');) {
    std::string program = (directory.empty() ? "." : directory) + '/' + name;
    if (can_be_run(program)) return program;
  }
  return "";
}

bool is_program(const std::string& name) { return !path_of_program(name).empty(); }

std::string mpi_parameter(const std::string& name) { return environment(("OMPI_MCA_" + name).c_str()); }

bool has_agent_of_environment() { return !agents_of_environment().empty(); }

std::vector<std::string> agent_that_asks() {
  const std::vector<std::string> agent = remote_agent();
  std::vector<std::string> command = is_ssh(agent) ? without_questions(agent) : agent;
  for (const std::string& word : split_words(arguments_of_environment())) command.push_back(word);
  return command;
}

std::string agent_of_mpirun() {
  std::string given = mpi_parameter("plm_rsh_agent");
  const std::vector<std::string> agent = remote_agent();
  if (!is_ssh(agent) || !is_program(agent[0]) || (agents_of_environment().empty() && is_named_elsewhere()))
    return given;
  return fmt::format("{}", fmt::join(without_questions(agent), " "));
}

}  // namespace mox::cli
