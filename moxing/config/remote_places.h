// What options name in an object store, and where it is on this machine.
#pragma once

#include <string>

namespace mox::internal {

// Copies what data_url names in a store to this machine (moxing/file/jobs/local_places.h); from here on the
// flag reads as the local path. Does nothing for a local data_url, nor in a program that has the flag
// data.cache where that is not "directory": it reads the store itself. Throws what file.h says.
void fetch_data();

// log_dir, else train_url: a URL if that is what was given.
std::string log_dir_as_given();

// The directory of local places, as file.local_directory says.
std::string local_places();

}  // namespace mox::internal
