#include "moxing/file/jobs/run_upload.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <stop_token>
#include <thread>
#include <vector>

#include "moxing/file/copy.h"
#include "moxing/file/file.h"
#include "moxing/file/jobs/internal/place.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"

namespace mox::file {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// Larger files are not read into memory.
constexpr int64_t kMostInMemory = 16 << 20;

// What a run and its tools keep for themselves, or have not finished.
bool is_temporary(const std::string& name) {
  for (const char* end : {".saving", ".previous", ".deleting", ".part"})
    if (name.ends_with(end)) return true;
  return name.starts_with('.') ||
         name.find(".tmp.") != std::string::npos;  // the latter of write_file_atomically
}

struct Seen {
  int64_t length = 0;
  std::chrono::system_clock::time_point mtime{};
  bool operator==(const Seen&) const = default;
};

}  // namespace

class RunUpload::Implementation {
 public:
  Implementation(std::string directory, std::string url, const RunUploadOptions& options)
      : directory_(std::move(directory)), url_(std::move(url)), options_(options) {
    while (url_.ends_with('/')) url_.pop_back();
    // Those of before this run are the store's too; of what both have, manifests tell whether it is the same.
    thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
  }

  // `within` seconds; the last look comes in any case.
  void finish(double within) {
    if (finished_) return;
    finished_ = true;
    thread_.request_stop();
    thread_.join();
    const auto deadline = Clock::now() + std::chrono::duration<double>(within);
    for (;;) {
      const std::string trouble = round(true);
      if (trouble.empty()) {
        log_info(fmt::format("'{}' has all of this run", url_));
        return;
      }
      if (Clock::now() + std::chrono::duration<double>(options_.retry_every_s) > deadline)
        throw IoError(
            fmt::format("not all of this run is in the store: {}\n'{}' on this machine has all of it; copy "
                        "it with: mox file sync {} {}",
                        trouble, directory_, directory_, url_));
      std::this_thread::sleep_for(std::chrono::duration<double>(options_.retry_every_s));
    }
  }

  const RunUploadOptions& options() const { return options_; }

 private:
  void work(const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any asked;
    auto last_files = Clock::time_point{};
    while (!stop.stop_requested()) {
      const bool files_too =
          Clock::now() - last_files > std::chrono::duration<double>(options_.files_every_s);
      if (files_too) last_files = Clock::now();
      const bool well = round(files_too).empty();
      std::unique_lock lock(mutex);
      asked.wait_for(lock, stop,
                     std::chrono::duration<double>(well ? options_.look_every_s : options_.retry_every_s),
                     [] { return false; });
    }
  }

  // One look at the directory. What is wrong with the store; "" if it has what there is.
  std::string round(bool files_too) {
    try {
      std::map<int64_t, Seen> checkpoints;
      std::map<std::string, Seen> files;
      look("", checkpoints, files);
      const auto is_new = [&](const auto& checkpoint) {
        const auto found = uploaded_.find(checkpoint.first);
        return found == uploaded_.end() || found->second != checkpoint.second;
      };
      // A run that goes on from a checkpoint wants the metrics up to there: they come before it.
      if (files_too || std::any_of(checkpoints.begin(), checkpoints.end(), is_new))
        for (const auto& [name, seen] : files)
          if (files_[name] != seen) upload_file(name, seen);
      for (const auto& checkpoint : checkpoints)
        if (is_new(checkpoint)) upload(checkpoint.first, checkpoint.second);
      for (auto entry = uploaded_.begin(); entry != uploaded_.end();) {
        // A run deletes what it has newer ones of. Where all are gone, somebody has cleaned up this machine.
        const bool has_newer = !checkpoints.empty() && checkpoints.rbegin()->first > entry->first;
        if (checkpoints.contains(entry->first) || !has_newer) {
          ++entry;
          continue;
        }
        remove_checkpoint(entry->first);
        entry = uploaded_.erase(entry);
      }
    } catch (const std::exception& error) {
      if (!lost_)
        log_warning(fmt::format(
            "the run cannot be uploaded to '{}': {}\nit goes on, and what is missing there is in '{}'", url_,
            error.what(), directory_));
      lost_ = true;
      return error.what();
    }
    if (lost_) log_info(fmt::format("'{}' has caught up with the run", url_));
    lost_ = false;
    return "";
  }

  // Looks below a directory of the run, "" or "a/b/". Throws if it cannot: what it does not see would count
  // as deleted.
  void look(const std::string& below, std::map<int64_t, Seen>& checkpoints,
            std::map<std::string, Seen>& files) const {
    const std::string place = directory_ + "/" + below;
    std::vector<DirectoryEntry> entries;
    try {
      entries = scan_dir(place);
    } catch (const Error&) {
      if (below.empty() || mox::is_there(place)) throw;
      return;  // the run has deleted it meanwhile
    }
    for (const DirectoryEntry& entry : entries) {
      const std::string name = below + entry.name, path = place + entry.name;
      if (entry.stat.is_directory) {
        std::error_code gone;
        if (!(below.empty() && is_temporary(entry.name)) && !fs::is_symlink(path, gone))
          look(name + "/", checkpoints, files);
        continue;
      }
      if (is_temporary(entry.name) || !is_there_as_file(path)) continue;
      const Seen seen{entry.stat.length, entry.stat.mtime};
      const std::string top = name.substr(0, name.find('/'));
      const auto step = internal::step_of(top);
      if (!step)
        files[name] = seen;
      else if (name == fmt::format("{}/{}", top, internal::kManifest))
        checkpoints[*step] = seen;
    }
  }

  void upload(int64_t step, const Seen& seen) {
    const std::string name = fmt::format("checkpoint-{}", step);
    const std::string from = directory_ + "/" + name, to = url_ + "/" + name, manifest(internal::kManifest);
    try {
      const std::string content = read(from + "/" + manifest);
      if (exists(to + "/" + manifest)) {
        if (read(to + "/" + manifest) == content) {  // of before
          uploaded_[step] = seen;
          return;
        }
        remove(to + "/" + manifest);  // another one of this step: it is not whole while it is replaced
      }
      std::vector<std::string> others;
      for (const std::string& file : list_directory(from, {.recursive = true, .skip_dir = true}))
        if (file != manifest) others.push_back(file);
      if (!others.empty()) copy_parallel(from, to, {.file_list = others, .threads = 4});
      write(to + "/" + manifest, content);
      uploaded_[step] = seen;
    } catch (const Error&) {
      // The run has deleted it meanwhile: it has a newer one.
      if (mox::is_there(from + "/" + manifest)) throw;
      uploaded_[step] = seen;  // what has arrived goes with the next look
    }
  }

  void remove_checkpoint(int64_t step) {
    const std::string place = fmt::format("{}/checkpoint-{}", url_, step);
    const std::string manifest = fmt::format("{}/{}", place, internal::kManifest);
    if (exists(manifest)) remove(manifest);
    if (exists(place)) remove(place, true);
  }

  void upload_file(const std::string& name, const Seen& seen) {
    const std::string from = directory_ + "/" + name, to = url_ + "/" + name;
    try {
      if (seen.length <= kMostInMemory)
        write(to, read(from));  // as it is now: it may be growing
      else
        copy(from, to);
      files_[name] = seen;
    } catch (const Error&) {
      const bool changed =
          !mox::is_there(from) || Seen{file::stat(from).length, file::stat(from).mtime} != seen;
      if (!changed) throw;
      if (seen.length <= kMostInMemory && mox::is_there(from)) throw;
    }
  }

  const std::string directory_;
  std::string url_;
  const RunUploadOptions options_;
  // Of the thread, and after its end of finish.
  std::map<int64_t, Seen> uploaded_;
  std::map<std::string, Seen> files_;
  bool lost_ = false, finished_ = false;
  std::jthread thread_;
};

RunUpload::RunUpload(std::string directory, std::string url, const RunUploadOptions& options)
    : implementation_(std::make_unique<Implementation>(std::move(directory), std::move(url), options)) {}

RunUpload::~RunUpload() {
  try {
    implementation_->finish(0);
  } catch (const std::exception& error) {
    log_error(error.what());
  }
}

void RunUpload::finish() { implementation_->finish(implementation_->options().finish_within_s); }

}  // namespace mox::file
