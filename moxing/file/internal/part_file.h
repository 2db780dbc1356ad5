// A file on its way: `<name>.moxing.part`, and for large ones a journal of the ranges that
// are there, `<name>.moxing.part.journal`.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "moxing/file/internal/descriptor.h"

namespace mox::file::internal {

class PartFile {
 public:
  // Opens or makes `part_path` and locks it: one process at a time writes it. IoError if another one does, or
  // if what has the name `path` is neither a file nor missing: a device would be replaced by a file. It is
  // its owner's alone until it is published, with `permissions`, which the process's umask narrows.
  PartFile(std::string path, std::string part_path, mode_t permissions = 0644);
  // With these permissions, whatever the umask.
  void permit(mode_t permissions) { exact_permissions_ = permissions; }

  // Takes the ranges that an earlier attempt has written, if it was about the same thing: `source` names it
  // (its ETag, its size, the size of a range). Makes room on the disk. IoError if there is too little.
  void begin(const std::string& source, int64_t size);

  // The MD5 (16 bytes) of what a range should hold if the journal has it; "" otherwise. The file
  // may lie: compare.
  std::string recorded(int64_t index) const;

  void write(std::string_view content, int64_t offset);
  void record(int64_t index, const std::string& md5);  // after its bytes were written
  std::string read(int64_t offset, int64_t length) const;

  // Empties it, for content without a journal: that of what was in it goes.
  void clear();

  // Gives it its name. `durable`: on the disk before and after.
  void publish(bool durable);

  // Removes it and its journal.
  void discard();

 private:
  bool empty();  // whether there was anything in it

  const std::string path_, part_path_, journal_path_;
  const mode_t permissions_;
  std::optional<mode_t> exact_permissions_;
  Descriptor file_, journal_;
  std::mutex mutex_;  // of the journal
  std::map<int64_t, std::string> recorded_;
};

// What a file of the name `name`, which may have directories before it, is called on its way: nothing that a
// user's own file is called, nothing in `taken` (nor is its journal), and nothing longer than a
// file system takes.
std::string part_name(const std::string& name, const std::set<std::string>& taken = {});

// What a file on its way has of the disk already; 0 if there is none.
int64_t disk_taken_by(const std::string& part_path);

// IoError if the file system of `path` (which need not exist yet) has less than `bytes` to give. `taken`: how
// many of them an earlier attempt has already; asked where there is too little otherwise.
void require_free_disk(const std::string& path, int64_t bytes, const std::function<int64_t()>& taken = {});

}  // namespace mox::file::internal
