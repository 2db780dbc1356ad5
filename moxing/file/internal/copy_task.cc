#include "moxing/file/internal/copy_task.h"

#include <fmt/format.h>

#include <algorithm>

#include "moxing/file/internal/descriptor.h"
#include "moxing/file/internal/object_name.h"
#include "moxing/file/internal/part_sizes.h"
#include "moxing/file/internal/parts/parts_behind_etag.h"
#include "moxing/file/internal/small/small_downloads.h"
#include "moxing/file/internal/store.h"
#include "moxing/file/s3/etag.h"
#include "moxing/file/s3/store_error.h"
#include "runtime/base/error.h"

namespace mox::file::internal {
namespace {

constexpr int64_t kMostMemory = int64_t{512} << 20;  // of parts under way
constexpr auto kBetweenProgress = std::chrono::milliseconds(200);

constexpr int kMostWithoutAnswer = 3;  // one may have trouble of its own

// Whether the store had no answer to any attempt, or only that it is not well.
bool is_without_answer(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const s3::StoreError& refused) {
    return s3::is_away(refused);
  } catch (...) {
    return false;
  }
}

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    return exception.what();
  } catch (...) {
    return "something that is no std::exception was thrown";
  }
}

// Whether the destination has the content of the source already.
bool is_same(CopyRun& run, const CopyItem& item) {
  if (!item.destination || item.destination->is_directory || item.destination->length != item.source->length)
    return false;
  if (item.from.remote && item.to.remote)
    return s3::is_condition(item.source->etag) && item.source->etag == item.destination->etag;
  if (!item.from.remote && !item.to.remote) {
    const Descriptor a = open_ordinary_file(item.from.path), b = open_ordinary_file(item.to.path);
    for (int64_t at = 0; at < item.source->length; at += kRange)
      if (read_fully_at(a.get(), at, kRange, item.from.path) !=
          read_fully_at(b.get(), at, kRange, item.to.path))
        return false;
    return true;
  }
  const Url& object = item.from.remote ? item.from : item.to;
  const Url& local = item.from.remote ? item.to : item.from;
  s3::ObjectInfo info{.size = item.source->length,
                      .etag = item.from.remote ? item.source->etag : item.destination->etag};
  int64_t part_size = 0;
  if (parts_in_etag(info.etag) > 0) {
    const auto found = run.client->head(object_name(object), run.options.stop);
    if (!found || found->etag != info.etag) return false;
    const auto size = parts_behind_etag(*run.client, object_name(object), *found, run.options.stop);
    if (!size) return false;
    part_size = *size;
    info = *found;
  } else if (!s3::is_md5(info.etag)) {
    return false;
  }
  EtagHasher hasher(part_size);
  const Descriptor file = open_ordinary_file(local.path);
  for (int64_t at = 0; at < info.size; at += kRange)
    hasher.update(read_fully_at(file.get(), at, std::min(kRange, info.size - at), local.path));
  if (hasher.finish() == info.etag) return true;
  // Its parts may differ in size. The last one tells most of such objects from those that have other content,
  // so that the store is not asked for each part of these.
  const int64_t count = parts_in_etag(info.etag);
  if (count <= 1) return false;
  const int64_t last =
      run.client->size_of_part(object_name(object), static_cast<int>(count), run.options.stop);
  if (last == info.size - (count - 1) * part_size) return false;
  return compare_by_other_parts(
             *run.client, object_name(object), info, part_size,
             [&](int64_t offset, int64_t length) {
               return read_fully_at(file.get(), offset, length, local.path);
             },
             run.options.stop) == ContentIs::kAsSaid;
}

}  // namespace

CopyRun::CopyRun(const CopyOptions& options, std::shared_ptr<s3::Client> client, Workers& workers)
    : options(options),
      client(std::move(client)),
      workers(workers),
      small(std::make_shared<SmallDownloads>()) {}

CopyRun::Memory::Memory(CopyRun& run, int64_t bytes) : run_(run), bytes_(bytes) {
  std::unique_lock lock(run_.memory_mutex_);
  run_.memory_freed_.wait(lock, [&] { return run_.memory_ == 0 || run_.memory_ + bytes_ <= kMostMemory; });
  run_.memory_ += bytes_;
}

CopyRun::Memory::~Memory() {
  {
    const std::lock_guard lock(run_.memory_mutex_);
    run_.memory_ -= bytes_;
  }
  run_.memory_freed_.notify_all();
}

void CopyRun::arrived(int64_t bytes, bool same, bool checked) {
  {
    const std::lock_guard lock(mutex_);
    ++report_.files;
    without_answer_ = 0;
    report_.bytes += bytes;
    report_.same_files += same;
    report_.unchecked += !checked;
  }
  show_progress();
}

void CopyRun::missing(const std::string& name, const std::string& why) {
  const std::lock_guard lock(mutex_);
  missing_.push_back(fmt::format("{}: {}", name, why));
}

void CopyRun::missing(const CopyItem& item, const std::exception_ptr& why) {
  {
    const std::lock_guard lock(mutex_);
    without_answer_ = is_without_answer(why) ? without_answer_ + 1 : 0;
  }
  missing(item.name, item.directory ? item.directory->named(text_of(why)) : text_of(why));
}

bool CopyRun::gives_up() const {
  const std::lock_guard lock(mutex_);
  return without_answer_ >= kMostWithoutAnswer;
}

bool CopyRun::may_begin(const std::string& name) {
  if (gives_up()) {
    missing(name, "not tried, since the store has not answered for others");
    return false;
  }
  if (options.stop.stop_requested()) throw s3::Cancelled("cancelled before it was begun");
  return true;
}

void CopyRun::found(int64_t files, int64_t bytes) {
  files_found_ += files;
  bytes_found_ += bytes;
}

void CopyRun::sent(int64_t bytes) {
  sent_ += bytes;
  if (bytes > 0) {
    const std::lock_guard lock(mutex_);
    without_answer_ = 0;
  }
  show_progress();
}

void CopyRun::continued(int64_t bytes) { continued_ += bytes; }

void CopyRun::made_directory() {
  const std::lock_guard lock(mutex_);
  ++report_.directories;
}

CopyReport CopyRun::report() const {
  const std::lock_guard lock(mutex_);
  CopyReport report = report_;
  report.sent_bytes = sent_.load();
  report.continued_bytes = continued_.load();
  return report;
}

std::vector<std::string> CopyRun::what_is_missing() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names = missing_;
  std::sort(names.begin(), names.end());
  return names;
}

void CopyRun::show_progress(bool at_once) {
  if (!options.on_progress) return;
  std::unique_lock lock(progress_mutex_, std::defer_lock);
  if (at_once)
    lock.lock();
  else if (!lock.try_lock())
    return;
  const auto now = std::chrono::steady_clock::now();
  if (!at_once && now - last_shown_ < kBetweenProgress) return;
  last_shown_ = now;
  const CopyReport now_there = report();
  options.on_progress({.files = now_there.files,
                       .files_total = files_found_.load(),
                       // Bytes of files that are under way count, those of files that were there as well.
                       .bytes = std::max(now_there.bytes, now_there.sent_bytes + now_there.continued_bytes),
                       .bytes_total = bytes_found_.load()});
}

void run_parts(Workers& workers, int64_t count, std::function<void(int64_t)> part,
               std::function<void(std::exception_ptr)> end) {
  struct Shared {
    std::function<void(int64_t)> part;
    std::function<void(std::exception_ptr)> end;
    std::atomic<int64_t> left;
    std::mutex mutex;
    std::exception_ptr error;
    bool failed() {
      const std::lock_guard lock(mutex);
      return error != nullptr;
    }
  };
  const auto shared = std::make_shared<Shared>();
  shared->part = std::move(part);
  shared->end = std::move(end);
  shared->left = count;
  if (count == 0) shared->end(nullptr);
  for (int64_t index = count - 1; index >= 0; --index) {
    workers.add_first([shared, index] {
      if (!shared->failed()) {
        try {
          shared->part(index);
        } catch (...) {
          const std::lock_guard lock(shared->mutex);
          if (!shared->error) shared->error = std::current_exception();
        }
      }
      if (--shared->left == 0) shared->end(shared->error);
    });
  }
}

void hold_directory_of(const CopyRun& run, CopyItem& item) {
  if (!run.target || item.directory) return;
  const size_t slash = item.name.rfind('/');
  item.directory =
      make_directory_below(run.target, slash == std::string::npos ? "" : item.name.substr(0, slash));
  for (std::string* path : {&item.to.path, &item.part_path})
    *path = item.directory->file(std::string_view(*path).substr(path->rfind('/') + 1));
}

void copy_file(const std::shared_ptr<CopyRun>& run, CopyItem item) {
  try {
    if (!run->may_begin(item.name)) return;
    if (!item.source) {
      item.source = store_of(item.from).stat(item.from);
      if (!item.source) throw NotFound(fmt::format("no file '{}'", to_string(item.from)));
      run->found(0, item.source->length);
    }
    if (item.source->is_directory)
      throw FailedPrecondition(fmt::format("'{}' is a directory", to_string(item.from)));
    hold_directory_of(*run, item);
    if (!item.destination_known && run->options.skip_same) item.destination = store_of(item.to).stat(item.to);
    if (item.destination && item.destination->is_directory && !item.to.remote)
      throw FailedPrecondition(fmt::format("'{}' is a directory", to_string(item.to)));
    if (run->options.skip_same && is_same(*run, item)) return run->arrived(item.source->length, true, true);
    if (item.from.remote && item.to.remote)
      copy_in_store(run, item);
    else if (item.from.remote)
      download(run, item);
    else if (item.to.remote)
      upload(run, item);
    else
      copy_local(*run, item);
  } catch (...) {
    run->missing(item, std::current_exception());
  }
}

}  // namespace mox::file::internal
