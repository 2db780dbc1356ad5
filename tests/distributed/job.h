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

// Two ranks, each started by a command of its own.
inline Words job_of_two(const Words& first, const Words& second) {
  Words words = {"/usr/bin/mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"};
  for (const Words* command : {&first, &second}) {
    if (command == &second) words.push_back(":");
    words.insert(words.end(), {"-n", "1", std::string(MOX_BINARY_DIR "/bin/") + command->front()});
    words.insert(words.end(), command->begin() + 1, command->end());
  }
  return words;
}

}  // namespace mox
