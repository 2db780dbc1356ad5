// The command by which something is started on another host, as mpirun and the launcher itself use it.
#pragma once

#include <string>
#include <vector>

namespace mox::cli {

bool can_be_run(const std::string& path);
// What execvp would find, "" if nothing.
std::string path_of_program(const std::string& name);
bool is_program(const std::string& name);

// A parameter of Open MPI as the environment has it, "" if it has not.
std::string mpi_parameter(const std::string& name);

bool has_agent_of_environment();

// What asks a host whether it is there, but for the host's name and its command: the agent of the environment
// or ssh, without questions.
std::vector<std::string> agent_that_asks();

// The agent that mpirun is to be told, "" to leave it to mpirun. ssh would ask for a password or the key of a
// host at the terminal, where the launcher's job is in the background and would be stopped without a word: it
// is given "-o BatchMode=yes -o ConnectTimeout=10", as far as the user's words for it do not set these.
std::string agent_of_mpirun();

}  // namespace mox::cli
