// The files of a run that the store has, brought to this machine; nothing that is here alone is lost.
#pragma once

#include <map>
#include <string>

#include "moxing/file/file.h"

namespace mox::file::internal {

// `there`: of the store, by their names in the run. What the store has as this machine knows it (StoredFiles)
// stays as it is here, and so does what has all of the store's content and goes on behind it. What another
// machine has written takes the place of what is here; if that has changed, too, it is put aside
// (`<place>.aside-NUMBER`), which a warning says.
void fetch_files(const std::string& url, const std::string& place, const std::map<std::string, Stat>& there);

}  // namespace mox::file::internal
