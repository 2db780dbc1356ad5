// Images of a folder that are not read because of what they are called or where they lie. Each loss is small
// to whoever sees "14 entries are left out", and may be most of a class.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "moxing/image_sets/internal/directory.h"

namespace mox::data::internal {

// The files of `listing` that are called as images of other kinds (.webp, .heic, ...), but for those with one
// that is read beside them under the same name, as a conversion leaves them.
std::vector<std::string> images_of_other_kinds(const Listing& listing);

class LeftOutImages {
 public:
  explicit LeftOutImages(std::string root) : root_(std::move(root)) {}

  // Finds them in `listing`, of the directory `within` (from the root), which is that of `part` ("class
  // 'daisy'"): images of other kinds, and those in directories of it. Returns the other entries, paths from
  // the root.
  std::vector<std::string> add(const std::string& part, const std::string& within, const Listing& listing);

  // One warning for all, which says how to mend it.
  void warn() const;
  // Throws DataError for a part of which more than this share is left out.
  void require_share(double limit) const;
  // Throws DataError if there are any.
  void require_none() const;

 private:
  struct Part {
    std::string name;  // "class 'daisy'"
    int64_t read = 0;
    std::vector<std::string> files = {}, directories = {};  // from the root
    int64_t in_directories = 0;
    int64_t count() const { return std::ssize(files) + in_directories; }
  };

  std::string describe(const Part& part) const;
  std::string way_out(const Part& part) const;

  std::string root_;
  std::vector<Part> parts_;  // that lack images
};

}  // namespace mox::data::internal
