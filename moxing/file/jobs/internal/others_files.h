// What another machine has written to the store of a run while this one trains it: nothing of it is lost.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "moxing/file/jobs/internal/stored_files.h"

namespace mox::file::internal {

class OthersFiles {
 public:
  // Of the run in `directory`, which goes to `url`; both without a slash at the end.
  OthersFiles(std::string directory, std::string url);

  // To be called before the store's version of a file is replaced or removed. If that is neither what this
  // machine knows to be there (`last`, or nullptr) nor the beginning of what is here, it is put aside
  // (`<directory>.aside-NUMBER/<name>`); a later one takes the place of an earlier one there.
  void keep(const std::string& name, const StoredFile* last);

  // Warns of what was kept, of each file once.
  void say();

 private:
  const std::string directory_, url_, aside_;
  std::vector<std::string> kept_;
  std::set<std::string> said_;
};

}  // namespace mox::file::internal
