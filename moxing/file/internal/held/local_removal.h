// Removals on disks. What is below a directory is reached from it, one directory after another, each of which
// is held: a link that somebody puts among them meanwhile is not followed.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "moxing/file/file.h"
#include "moxing/file/internal/descriptor.h"
#include "moxing/file/internal/removal_report.h"

namespace mox::file::internal {

class EntriesBelow {
 public:
  explicit EntriesBelow(Descriptor top) : top_(std::move(top)) {}

  // Of "a/b": 0, or why it stays, as errno says it; ELOOP where a link or a file has come among the
  // directories that lead to it.
  int remove(const std::string& name, bool is_directory);
  bool is_link(const std::string& name);

 private:
  // Of the directory that `name` lies in; -1 and errno if that is not to be had.
  int directory_of(const std::string& name);

  const Descriptor top_;
  std::string held_name_;  // what is removed in turn lies in one directory mostly
  Descriptor held_;
};

// The directory of this name, through links: to remove what is below it. Throws IoError.
Descriptor hold_directory(const std::string& path);

// What such an error means to who wants something removed.
std::string_view why_it_stays(int error);

// Removes a directory that is no link, and what is below it; says in the report what stays.
void remove_directory_tree(const std::string& path, RemovalReport& report);

// The same of those entries alone, a directory before what is in it. Of a link that leads to a directory the
// link goes, and nothing that it leads to. Throws IoError if a link has come into the place of `path`.
void remove_listed_tree(const std::string& path, const std::vector<DirectoryEntry>& entries,
                        RemovalReport& report);

}  // namespace mox::file::internal
