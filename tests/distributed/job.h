// Starts programs as jobs of several processes on this machine.
#pragma once

#include <string>

#include "tests/programs/training.h"

namespace mox {

// Ranks x devices.
struct TestPlacement {
  int ranks = 1, devices = 1;
  std::string name() const { return std::to_string(ranks) + "x" + std::to_string(devices); }
};

// `command` under mpirun with that many ranks; one rank is started without mpirun, as a user would.
inline Words job_of(int ranks, const Words& command) {
  if (ranks == 1) return command;
  Words words = {"/usr/bin/mpirun",    "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n",
                 std::to_string(ranks)};
  words.push_back(std::string(MOX_BINARY_DIR "/bin/") + command[0]);
  words.insert(words.end(), command.begin() + 1, command.end());
  return words;
}

// One rank for each of the commands, whose programs are whole paths. (The mpirun of Open MPI 5.0.7 ends
// itself with a segmentation fault where it is given several programs, so each rank chooses.)
inline Words job_of_commands(const std::vector<Words>& commands) {
  std::string script;
  for (size_t rank = 0; rank < commands.size(); ++rank) {
    script += "[ $OMPI_COMM_WORLD_RANK != " + std::to_string(rank) + " ] || exec";
    for (const std::string& word : commands[rank]) script += " '" + word + "'";
    script += "\n";
  }
  return {"/usr/bin/mpirun",
          "--allow-run-as-root",
          "--oversubscribe",
          "--bind-to",
          "none",
          "-n",
          std::to_string(commands.size()),
          "/bin/bash",
          "-c",
          script};
}

// Two ranks, each started by a command of its own.
inline Words job_of_two(Words first, Words second) {
  for (Words* command : {&first, &second}) command->front() = MOX_BINARY_DIR "/bin/" + command->front();
  return job_of_commands({first, second});
}

}  // namespace mox
