// Copies of files and directory trees between local disks and object stores: checked,
// repeated, and continued.
//
// A file arrives under its name only when it is whole and checked. A download is written to
// `<name>.moxing.part`, a small one of a tree that is not there yet to a file without a name, where the file
// system has that; an upload of more than one request is a multipart upload. After an interruption, kill -9
// included, the same call goes on: files that arrived are left, and parts that arrived not sent again.
//
// Checks: size always; with Verify::kChecksum also content, against what the store says of it (an MD5, or the
// MD5s of the parts) and, between local files, by reading what was written. What a store gives no checksum
// for is checked by size alone, and counted in CopyReport::unchecked. Uploads carry an MD5 that
// the store compares.
//
// The source is only read. If it changes while it is read, that is an error.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

namespace mox::file {

enum class Verify {
  kChecksum,
  kSize,  // faster for large files: no content is compared
};

struct CopyProgress {
  int64_t files = 0, files_total = 0;  // done and found so far (files that were there are done)
  int64_t bytes = 0, bytes_total = 0;
  bool listing = false;  // more may be found
};

struct CopyOptions {
  std::vector<std::string> file_list = {};  // of the tree these names only, "a/b"; empty: all
  int threads = 16;  // files and parts under way at a time, 1 to 1024; small ones down count apart
  Verify verify = Verify::kChecksum;
  // A file of the same size and content is not copied again. False: everything is.
  bool skip_same = true;
  // When this returns, what was copied to a local disk is durable (fsync); it costs small files dearly.
  bool durable = false;
  std::function<void(const CopyProgress&)> on_progress =
      {};  // a few times a second, on any thread, one call at a time
  std::stop_token stop =
      {};  // ends with an IoError; no half file has a final name, and uploads are taken back
};

struct CopyReport {
  int64_t files = 0, bytes = 0;  // that are at the destination now
  int64_t same_files = 0;        // of them, those that were there before
  int64_t sent_bytes = 0;        // that travelled
  int64_t continued_bytes = 0;   // of files that were begun before, and needed not travel again
  int64_t directories = 0;
  int64_t unchecked = 0;  // files whose content could not be checked, as the store gives no checksum
};

// Copies one file to the name `to`. Throws FailedPrecondition if one of them is a directory.
CopyReport copy(const std::string& from, const std::string& to, const CopyOptions& options = {});

// Copies what is below the directory `from` to below the directory `to`, which is made if it is not there;
// empty directories too. (A single file is copied as `copy` does.) Every file is tried, until three in a row
// had no answer from the store in all their attempts; if some could not be copied, an IoError says how many
// files and bytes are there, and which are missing and why.
//
// Names that a file system cannot hold or that would leave `to` ("a//b", "../a", "a" beside "a/b") are
// missing files. On a disk `to` may be a link, and none of the directories below it: what would be written
// through such a link is a missing file, too.
CopyReport copy_parallel(const std::string& from, const std::string& to, const CopyOptions& options = {});

// `rename` (file.h) with the options of a copy, for what has to be copied; it is durable in any case.
CopyReport rename(const std::string& from, const std::string& to, const CopyOptions& options);

// copy_parallel, and then with `remove_others` removes from `to` what `from` does not have (of a link, the
// link). What comes into `to` meanwhile stays; where that keeps a local directory, an IoError names it.
// FailedPrecondition if `from` lies in `to`: it would go, too.
struct SyncReport {
  CopyReport copied;
  int64_t removed = 0;
};
SyncReport sync(const std::string& from, const std::string& to, bool remove_others = false,
                const CopyOptions& options = {});

}  // namespace mox::file
