// Who holds the lock of a file, as the holder has written it into the file.
#pragma once

#include <chrono>
#include <string>

namespace mox::internal {

// Between two attempts at a lock that another process holds.
inline constexpr std::chrono::milliseconds kBetweenLockAttempts{20};

// Writes this process into the file whose lock it has got. For messages of others alone: a disk too full for
// it is met where it matters.
void write_lock_owner(int descriptor);

// "process 12 on a-host", for messages.
std::string lock_owner(int descriptor);

}  // namespace mox::internal
