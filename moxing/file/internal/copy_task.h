// One file on its way from one store to another, as tasks of workers.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "moxing/file/copy.h"
#include "moxing/file/file.h"
#include "moxing/file/internal/held/target_directories.h"
#include "moxing/file/internal/url.h"
#include "moxing/file/internal/workers.h"
#include "moxing/file/md5/md5_queue.h"
#include "moxing/file/s3/client.h"

namespace mox::file::internal {

class SmallDownloads;
struct CopyItem;

// What the files of one call of copy or copy_parallel share.
class CopyRun {
 public:
  CopyRun(const CopyOptions& options, std::shared_ptr<s3::Client> client, Workers& workers);

  const CopyOptions& options;
  const std::shared_ptr<s3::Client> client;  // if one of the sides is remote
  Workers& workers;
  Md5Queue md5s;
  const std::shared_ptr<SmallDownloads> small;
  TargetDirectory target;  // of a tree that is copied to a disk; set before the first file

  // Of a file, once, at its end.
  void arrived(int64_t bytes, bool same, bool checked);
  void missing(const std::string& name, const std::string& why);
  void missing(const CopyItem& item, const std::exception_ptr& why);
  // Whether several files in a row have had no answer in all their attempts: each further one would
  // wait as long.
  bool gives_up() const;
  // False if so, which has been reported. Throws Cancelled.
  bool may_begin(const std::string& name);

  void found(int64_t files, int64_t bytes);
  void sent(int64_t bytes);       // travelled
  void continued(int64_t bytes);  // need not travel again
  void made_directory();

  // Memory for a part; waits while others have too much of it.
  class Memory {
   public:
    Memory(CopyRun& run, int64_t bytes);
    ~Memory();
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

   private:
    CopyRun& run_;
    const int64_t bytes_;
  };

  CopyReport report() const;
  std::vector<std::string> what_is_missing() const;  // "NAME: why"
  int64_t files_found() const { return files_found_.load(); }
  void show_progress(bool at_once = false);

 private:
  std::atomic<int64_t> files_found_{0}, bytes_found_{0}, sent_{0}, continued_{0};
  mutable std::mutex mutex_;  // of what follows
  CopyReport report_;
  std::vector<std::string> missing_;
  int without_answer_ = 0;  // files since the store has last answered
  std::mutex progress_mutex_;
  std::chrono::steady_clock::time_point last_shown_;
  std::mutex memory_mutex_;
  std::condition_variable memory_freed_;
  int64_t memory_ = 0;
};

struct CopyItem {
  std::string name;  // for people
  Url from, to;
  std::optional<Stat> source;       // nothing: not looked at yet
  std::optional<Stat> destination;  // nothing: it is not there, or has not been looked at
  bool destination_known = false;
  std::string part_path = {};      // of a local destination, until it is whole (part_file.h)
  TargetDirectory directory = {};  // that holds both, once hold_directory_of was called
};

// Of a file of a tree that is copied to a disk: has it written into its directory as that is now, which is
// made if it is missing, and no link. Throws IoError.
void hold_directory_of(const CopyRun& run, CopyItem& item);

// Copies a file; to be called by a worker. Its end is reported to the run, possibly by another worker.
void copy_file(const std::shared_ptr<CopyRun>& run, CopyItem item);

// The four ways. All throw what goes wrong at once, and report what goes wrong later.
void copy_local(CopyRun& run, const CopyItem& item);
void copy_in_store(const std::shared_ptr<CopyRun>& run, const CopyItem& item);
void download(const std::shared_ptr<CopyRun>& run, const CopyItem& item);
void upload(const std::shared_ptr<CopyRun>& run, const CopyItem& item);

// Makes a directory on a disk, and those above it, unless it is there: closed to whom `like`, a directory
// too, is closed to. Its owner may write into it in any case.
void make_directory_like(const std::string& like, const std::string& path);
// The same below a directory that is held.
void make_directory_like(const std::string& like, const TargetDirectory& top, const std::string& name);

// The same of all directories below `from` on the way to `name`, below `top`: a file is put there later. What
// is in the way of one is for the copy of the file to say.
void make_directories_like(const Url& from, const TargetDirectory& top, const std::string& name);

// Gives the directories that were made for a move from one disk to another the permissions of the source's.
// Throws IoError, also where a link has come into the place of one.
void give_permissions(const Url& from, const Url& to, const std::vector<DirectoryEntry>& entries);

// The steps of a download of one request; `begun`: the first attempt, if it is over already.
void download_in_one(CopyRun& run, const CopyItem& item, std::optional<s3::HttpAttempt> begun = {});
void write_whole(const CopyItem& item, std::string_view content, bool durable);

// Calls `part(index)` for each index below `count` on the workers, before what they have to do else, then
// `end` once: with nothing, or with the first exception, after which no further part is begun. Without any
// part `end` is called at once.
void run_parts(Workers& workers, int64_t count, std::function<void(int64_t)> part,
               std::function<void(std::exception_ptr)> end);

// Whole objects from and to memory, checked.
std::string download_to_memory(s3::Client& client, const s3::ObjectName& object, const s3::ObjectInfo& info);
void upload_from_memory(s3::Client& client, const s3::ObjectName& object, std::string_view content);

}  // namespace mox::file::internal
