// Which machine a process runs on. Machines are told apart by what they are: names may be the same on two of
// them, and a container gives itself one of its own.
#pragma once

#include <string>

namespace mox::internal {

struct Machine {
  std::string name;    // for messages: the host's name
  std::string kernel;  // the same for all processes whose cores and memory are the same: the kernel's boot id
  std::string network;  // and of one network namespace: the loopback of one is that of the other
  // The same for processes that see each other: of one kernel and in one network and one process namespace. A
  // container with a network or processes of its own is a machine of its own, with its own files; one that
  // only has files of its own (as batch systems start each process) is not.
  std::string id;
};

// `root` stands before the paths that are read, for tests. What cannot be read is left out; without a boot id
// the name stands for it.
Machine this_machine(const std::string& root = "");

}  // namespace mox::internal
