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
#include "moxing/file/jobs/internal/known_manifests.h"
#include "moxing/file/jobs/internal/others_files.h"
#include "moxing/file/jobs/internal/place.h"
#include "moxing/file/jobs/internal/run_names.h"
#include "moxing/file/jobs/internal/stored_files.h"
#include "moxing/file/open_file.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"

namespace mox::file {
namespace {

namespace fs = std::filesystem;
using internal::kMostInMemory;
using internal::Seen;
// Of what was begun to be sent: whether it has arrived only the store knows, since an answer may be lost.
constexpr Seen kUnknown{.length = -1};
using Clock = std::chrono::steady_clock;
// Of a link to a file: it is another's than the run's, whoever has put the link there.
constexpr const char* kLeadsOut = "it is a link out of the run's directory";

// A checkpoint, in the order in which they are uploaded: the best state, and what else lies deeper, before
// the checkpoints from which a run goes on with it.
struct CheckpointName {
  bool is_of_run = true;  // log_dir/checkpoint-<step>
  std::string directory;  // that it lies in, "best/"; "": log_dir
  int64_t step = 0;
  std::string name;  // "best/checkpoint-9"
  // clang-tidy 14 takes what it compares with 0 for pointers.
  auto operator<=>(const CheckpointName&) const = default;  // NOLINT(modernize-use-nullptr)
};

CheckpointName checkpoint_name(const std::string& name) {
  const size_t slash = name.rfind('/');
  const std::string directory = slash == std::string::npos ? "" : name.substr(0, slash + 1);
  return {directory.empty(), directory, internal::step_of(name.substr(directory.size())).value_or(0), name};
}

using Checkpoints = std::map<CheckpointName, Seen>;
using Files = std::map<std::string, Seen>;

// What a look at the directory of a run has found.
struct Found {
  Checkpoints checkpoints;
  Files files;                                  // that belong to no checkpoint
  Files beside;                                 // that somebody keeps in the directory of a checkpoint
  std::map<std::string, std::string> left_out;  // and why
};

std::string directory_of(const std::string& name) {
  const size_t slash = name.rfind('/');
  return slash == std::string::npos ? "" : name.substr(0, slash);
}

}  // namespace

class RunUpload::Implementation {
 public:
  Implementation(std::string directory, std::string url, const RunUploadOptions& options)
      : directory_(std::move(directory)),
        url_(internal::without_slashes(std::move(url))),
        options_(options),
        others_(internal::without_slashes(directory_), url_) {
    // Those of before this run are the store's too; of what both have, manifests tell whether it is the same.
    if (auto known = internal::read_known_manifests(directory_)) known_ = *std::move(known);
    stored_ = internal::read_stored_files(directory_);
    thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
  }

  // `within` seconds; the last look comes in any case.
  void finish(double within) {
    if (finished_) return;
    finished_ = true;
    // At once: an attempt on a store that does not answer takes a while.
    if (within > 0)
      log_info(
          fmt::format("uploading what is left of the run to '{}'; where the store does not answer, for up "
                      "to {:.0f} s. Ctrl-C ends that: '{}' has all of it",
                      url_, within, directory_));
    thread_.request_stop();
    thread_.join();
    const auto deadline = Clock::now() + std::chrono::duration<double>(within);
    for (;;) {
      const std::string trouble = round(true);
      if (trouble.empty()) {
        log_info(fmt::format("'{}' has all of this run{}", url_, but_for_what_is_left_out()));
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
      Found found;
      look("", found);
      say_what_is_left_out(found.left_out);
      const auto is_new = [&](const auto& checkpoint) {
        const auto known = uploaded_.find(checkpoint.first);
        return known == uploaded_.end() || known->second != checkpoint.second;
      };
      // A run that goes on from a checkpoint wants the metrics up to there: they come before it.
      files_too |= std::any_of(found.checkpoints.begin(), found.checkpoints.end(), is_new);
      if (files_too) upload(found.files);
      for (const auto& checkpoint : found.checkpoints)
        if (is_new(checkpoint)) upload(checkpoint.first, checkpoint.second);
      if (files_too) upload(found.beside);
      remove_deleted(found.checkpoints);
      found.files.merge(found.beside);
      if (files_too) remove_deleted(found.files);
      others_.say();
    } catch (const std::exception& error) {
      others_.say();
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
  void look(const std::string& below, Found& found, bool is_in_checkpoint = false) const {
    const std::string place = directory_ + "/" + below;
    std::vector<DirectoryEntry> entries;
    try {
      entries = scan_dir(place);
    } catch (const Error&) {
      if (below.empty() || mox::is_there(place)) throw;
      return;  // the run has deleted it meanwhile
    }
    const std::string directory = internal::without_slashes(below);
    const bool is_checkpoint =
        !is_in_checkpoint && internal::has_checkpoint_name(directory) && has_manifest(place);
    is_in_checkpoint |= is_checkpoint;
    bool is_whole = true;
    for (const DirectoryEntry& entry : entries) {
      const std::string name = below + entry.name, path = place + entry.name;
      const Seen seen{entry.stat.length, entry.stat.mtime};
      if (is_checkpoint && entry.name == internal::kManifest)
        found.checkpoints[checkpoint_name(directory)] = seen;
      if (internal::is_of_machine(entry.name, entry.stat.is_directory)) continue;
      if (is_checkpoint && internal::is_of_every_checkpoint(entry.name)) {
        if (!internal::leads_out_of(directory_, path)) continue;
        found.left_out[name] = kLeadsOut;
        is_whole = false;
        continue;
      }
      std::error_code gone;
      if (entry.stat.is_directory && fs::is_symlink(path, gone))
        found.left_out[name] = "it leads to a directory";
      else if (entry.stat.is_directory)
        look(name + "/", found, is_in_checkpoint);
      else if (internal::leads_out_of(directory_, path))
        found.left_out[name] = kLeadsOut;
      else if (is_there_as_file(path))
        (is_in_checkpoint ? found.beside : found.files)[name] = seen;
      else if (fs::exists(fs::symlink_status(path, gone)))
        found.left_out[name] = "it is no file";
    }
    if (!is_whole) found.checkpoints.erase(checkpoint_name(directory));
  }

  // A program may have directories and files of these names, too.
  bool has_manifest(const std::string& place) const {
    const std::string path = fmt::format("{}{}", place, internal::kManifest);
    constexpr int64_t kBegin = 256;
    try {
      return is_there_as_file(path) && !internal::leads_out_of(directory_, path) &&
             internal::begins_as_manifest(File(path).read(kBegin));
    } catch (const Error&) {
      if (mox::is_there(path)) throw;
      return false;  // it is being deleted, and so are the files beside it
    }
  }

  void say_what_is_left_out(const std::map<std::string, std::string>& left_out) {
    for (const auto& [name, why] : left_out)
      if (!left_out_.contains(name))
        log_warning(
            fmt::format("'{}/{}' is not uploaded to '{}': {}, and files and directories that lie there alone "
                        "are. If the store is to have it, put a copy in its place",
                        directory_, name, url_, why));
    left_out_ = left_out;
  }

  // A run deletes what it has newer ones of, and the best state for another one. Where all of a directory are
  // gone, somebody has cleaned up this machine.
  void remove_deleted(const Checkpoints& there) {
    std::erase_if(uploaded_, [&](const auto& uploaded) {
      const CheckpointName& name = uploaded.first;
      const bool is_replaced = std::any_of(there.begin(), there.end(), [&](const auto& other) {
        return other.first.directory == name.directory && (!name.is_of_run || other.first.step > name.step);
      });
      if (there.contains(name) || !is_replaced || mox::is_there(directory_ + "/" + name.name)) return false;
      remove_checkpoint(name.name);
      return true;
    });
  }

  // The same of files, of which one that was uploaded must be left.
  void remove_deleted(const Files& there) {
    std::set<std::string> living;
    for (const auto& [name, seen] : files_)
      if (there.contains(name)) living.insert(directory_of(name));
    std::erase_if(files_, [&](const auto& uploaded) {
      const std::string& name = uploaded.first;
      if (there.contains(name) || mox::is_there(directory_ + "/" + name)) return false;
      const std::string place = url_ + "/" + name;
      if (living.contains(directory_of(name)) && exists(place)) {
        others_.keep(name, known_file(name));
        remove(place);
      }
      stored_.erase(name);
      return true;
    });
  }

  void upload(const CheckpointName& checkpoint, const Seen& seen) {
    const std::string from = directory_ + "/" + checkpoint.name, to = url_ + "/" + checkpoint.name,
                      manifest(internal::kManifest);
    try {
      const std::string content = read(from + "/" + manifest);
      if (exists(to + "/" + manifest)) {
        const std::string stored = read(to + "/" + manifest);
        if (stored == content) {  // of before
          uploaded_[checkpoint] = seen;
          know(checkpoint, content);
          return;
        }
        const auto known = known_.find(checkpoint.name);
        const bool is_own = known != known_.end() && known->second == internal::digest_of_manifest(stored);
        if (!is_own)
          log_warning(fmt::format(
              "'{}' is another one than that of this run, which takes its place: is another run going on "
              "there? Give each a train_url of its own",
              to));
        remove(to + "/" + manifest);  // it is not whole while it is replaced
      }
      uploaded_.insert_or_assign(checkpoint, kUnknown);  // from here on it goes when the run's goes
      std::vector<std::string> others;
      for (const std::string& file : list_directory(from, {.skip_dir = true}))
        if (const std::string path = from + "/" + file;
            file != manifest && is_there_as_file(path) && !internal::leads_out_of(directory_, path))
          others.push_back(file);
      if (!others.empty()) copy_parallel(from, to, {.file_list = others, .threads = 4});
      write(to + "/" + manifest, content);
      uploaded_[checkpoint] = seen;
      know(checkpoint, content);
    } catch (const Error&) {
      // The run has deleted it meanwhile: it has a newer one.
      if (mox::is_there(from + "/" + manifest)) throw;
      uploaded_[checkpoint] = seen;  // what has arrived goes with the next look
    }
  }

  std::string but_for_what_is_left_out() const {
    std::string names;
    for (const auto& [name, why] : left_out_)
      names += fmt::format("{}'{}'", names.empty() ? ", but for " : ", ", name);
    return names;
  }

  // For the next start of the run on this machine.
  void know(const CheckpointName& checkpoint, const std::string& manifest) {
    known_[checkpoint.name] = internal::digest_of_manifest(manifest);
    if (mox::is_there(directory_)) internal::write_known_manifests(directory_, known_);
  }

  void remove_checkpoint(const std::string& name) {
    const std::string place = url_ + "/" + name, manifest = fmt::format("{}/{}", place, internal::kManifest);
    if (exists(manifest)) remove(manifest);
    if (exists(place)) remove(place, true);
  }

  // What has arrived is known before the next start of the run on this machine, whatever comes next.
  void upload(const Files& files) {
    bool any = false;
    const auto keep_known = [&] {
      if (any && mox::is_there(directory_)) internal::write_stored_files(directory_, stored_);
    };
    try {
      for (const auto& [name, seen] : files)
        if (const auto known = files_.find(name); known == files_.end() || known->second != seen) {
          upload_file(name, seen);
          any = true;
        }
    } catch (const Error&) {
      keep_known();
      throw;
    }
    keep_known();
  }

  const internal::StoredFile* known_file(const std::string& name) const {
    const auto known = stored_.find(name);
    return known == stored_.end() ? nullptr : &known->second;
  }

  void upload_file(const std::string& name, const Seen& seen) {
    const std::string from = directory_ + "/" + name, to = url_ + "/" + name;
    if (internal::leads_out_of(directory_, from)) return;  // since it was looked at, minutes ago perhaps
    try {
      others_.keep(name, known_file(name));
      files_.insert_or_assign(name, kUnknown);
      int64_t sent = seen.length;
      if (seen.length <= kMostInMemory) {
        const std::string content = read(from);  // as it is now: it may be growing
        write(to, content);
        sent = std::ssize(content);
      } else {
        copy(from, to);
      }
      const Stat there = file::stat(to);
      // Another length is of another machine, which came in between: it is not known here.
      if (there.length == sent)
        stored_[name] = {there.etag, seen};
      else
        stored_.erase(name);
      files_[name] = seen;
    } catch (const Error&) {
      const bool changed = !mox::is_there(from) || internal::seen_at(from) != seen;
      if (!changed) throw;
      if (seen.length <= kMostInMemory && mox::is_there(from)) throw;
    }
  }

  const std::string directory_;
  const std::string url_;
  const RunUploadOptions options_;
  // Of the thread, and after its end of finish.
  Checkpoints uploaded_;
  Files files_;
  internal::KnownManifests known_;
  internal::StoredFiles stored_;
  internal::OthersFiles others_;
  std::map<std::string, std::string> left_out_;
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
