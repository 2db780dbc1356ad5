#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "moxing/file/internal/copy_task.h"
#include "moxing/file/internal/object_name.h"
#include "moxing/file/internal/part_file.h"
#include "moxing/file/internal/part_sizes.h"
#include "moxing/file/internal/parts/parts_behind_etag.h"
#include "moxing/file/s3/store_error.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/resource_limits.h"

namespace mox::file::internal {
namespace {

// Content that is not what its ETag says is fetched once more, whole.
constexpr int kMostDownloads = 2;

void make_parent(const CopyItem& item) {
  const std::string parent = std::filesystem::path(item.to.path).parent_path();
  if (!parent.empty()) make_directories(parent);
}

struct RangedDownload {
  RangedDownload(std::shared_ptr<CopyRun> run, CopyItem item, s3::ObjectInfo info,
                 std::optional<int64_t> part_size)
      : run(std::move(run)),
        item(std::move(item)),
        object(object_name(this->item.from)),
        info(std::move(info)),
        part_size(part_size),
        range(part_size && *part_size >= kRange / 8 && *part_size <= kLongestRange ? *part_size : kRange),
        count(count_of_parts(this->info.size, range)),
        file(this->item.to.path, this->item.part_path),
        check(this->info, part_size),
        md5s(count),
        there(count) {}

  int64_t length_of(int64_t index) const { return std::min(range, info.size - index * range); }

  void take(int64_t index) {
    if (run->options.stop.stop_requested())
      throw s3::Cancelled("cancelled; the same copy goes on from what is there");
    const int64_t offset = index * range, length = length_of(index);
    std::string md5 = file.recorded(index);
    if (!md5.empty() && run->md5s.digest(file.read(offset, length)) == md5) {
      run->continued(length);
    } else {
      const CopyRun::Memory memory(*run, length);
      const std::string bytes = run->client->get_range(object, offset, length, info.etag, run->options.stop);
      md5 = run->md5s.digest(bytes);
      file.write(bytes, offset);
      file.record(index, md5);
      run->sent(length);
    }
    if (ranges_are_parts())
      md5s[index] = std::move(md5);
    else
      hash_what_is_there(index);
  }

  // In order, by one worker at a time, while the others go on.
  void hash_what_is_there(int64_t index) {
    if (!checks()) return;
    {
      const std::lock_guard lock(mutex);
      there[index] = true;
      if (hashing) return;
      hashing = true;
    }
    for (;;) {
      {
        const std::lock_guard lock(mutex);
        if (hashed == count || !there[hashed]) {
          hashing = false;
          return;
        }
      }
      check.update(file.read(hashed * range, length_of(hashed)));
      ++hashed;
    }
  }

  // Then nothing has to be read again for the ETag.
  bool ranges_are_parts() const { return part_size == range; }
  ContentIs content() {
    if (!checks()) return ContentIs::kUnknown;
    if (ranges_are_parts() ? s3::etag_of_parts(md5s) == info.etag : check.finish()) return ContentIs::kAsSaid;
    if (!part_size) return ContentIs::kAnother;
    return compare_by_other_parts(
        *run->client, object, info, *part_size,
        [this](int64_t offset, int64_t length) { return file.read(offset, length); }, run->options.stop);
  }
  bool checks() const { return check.is_possible() && run->options.verify == Verify::kChecksum; }

  const std::shared_ptr<CopyRun> run;
  const CopyItem item;
  const s3::ObjectName object;
  const s3::ObjectInfo info;
  const std::optional<int64_t> part_size;
  const int64_t range, count;
  PartFile file;
  ContentCheck check;             // of whoever has set `hashing`
  std::vector<std::string> md5s;  // of the ranges, each of its own worker
  std::mutex mutex;               // of what follows
  std::vector<bool> there;
  bool hashing = false;
  int64_t hashed = 0;
};

void begin_ranged(const std::shared_ptr<CopyRun>& run, const CopyItem& item, int attempt) {
  const auto info = run->client->head_with_checksum(object_name(item.from), run->options.stop);
  if (!info) throw NotFound(fmt::format("no object '{}'", to_string(item.from)));
  if (info->size <= kSingleRequest) {
    // It was longer when it was listed. An empty one would have no range, and so no end.
    CopyItem shorter = item;
    shorter.source->length = info->size;
    return download_in_one(*run, shorter);
  }
  // What was listed has room on the disk. What has grown since must have it before its ranges take memory.
  if (info->size > item.source->length) require_free_disk(item.to.path, info->size - item.source->length);
  const auto part_size = parts_behind_etag(*run->client, object_name(item.from), *info, run->options.stop);
  const auto job = std::make_shared<RangedDownload>(run, item, *info, part_size);
  job->file.begin(fmt::format("{} {} {} {}", to_string(item.from), info->etag, info->size, job->range),
                  info->size);
  run_parts(
      run->workers, job->count, [job](int64_t index) { job->take(index); },
      [job, attempt](const std::exception_ptr& error) {
        try {
          if (error) std::rethrow_exception(error);
          const ContentIs content = job->content();
          if (content == ContentIs::kAnother) {
            job->file.discard();
            if (attempt < kMostDownloads) {
              job->run->workers.add_first([run = job->run, item = job->item, attempt] {
                try {
                  begin_ranged(run, item, attempt + 1);
                } catch (...) {
                  run->missing(item, std::current_exception());
                }
              });
              return;
            }
            throw DataError(fmt::format("'{}' has arrived with another content than its {} says",
                                        job->object.shown(), job->check.promise()));
          }
          job->file.publish(job->run->options.durable);
          job->run->arrived(job->info.size, false,
                            content == ContentIs::kAsSaid || job->run->options.verify == Verify::kSize);
        } catch (const s3::StoreError& refused) {
          // What is there is of another object.
          if (refused.status() == s3::kChangedStatus) job->file.discard();
          job->run->missing(job->item, std::current_exception());
        } catch (...) {
          job->run->missing(job->item, std::current_exception());
        }
      });
}

}  // namespace

void download_in_one(CopyRun& run, const CopyItem& item, std::optional<s3::HttpAttempt> begun) {
  s3::ObjectInfo info;
  std::string content;
  bool checked = false;
  {
    const CopyRun::Memory memory(run, item.source->length);
    for (int attempt = 1; !checked; ++attempt) {
      // Its ETag may be another one in a listing.
      const s3::ObjectName object = object_name(item.from);
      const s3::ObjectInfo known{.size = item.source->length, .etag = ""};
      std::optional<s3::HttpAttempt> first = std::exchange(begun, std::nullopt);
      content = first ? run.client->get_same(object, known, &info, run.options.stop, *std::move(first))
                      : run.client->get_same(object, known, &info, run.options.stop);
      if (info.tells_content()) break;  // compared by `get`
      const auto part_size = parts_behind_etag(*run.client, object_name(item.from), info, run.options.stop);
      if (!part_size || run.options.verify == Verify::kSize) break;
      EtagHasher hasher(*part_size);
      hasher.update(content);
      checked = hasher.finish() == info.etag;
      if (checked) break;
      const ContentIs found = compare_by_other_parts(
          *run.client, object, info, *part_size,
          [&](int64_t offset, int64_t length) { return content.substr(offset, length); }, run.options.stop);
      if (found == ContentIs::kUnknown) break;
      checked = found == ContentIs::kAsSaid;
      if (!checked && attempt == kMostDownloads)
        throw DataError(fmt::format("'{}' has arrived with another content than its ETag {} says",
                                    to_string(item.from), info.etag));
    }
    write_whole(item, content, run.options.durable);
  }
  run.sent(item.source->length);
  run.arrived(item.source->length, false,
              checked || run.options.verify == Verify::kSize || info.tells_content());
}

void write_whole(const CopyItem& item, std::string_view content, bool durable) {
  make_parent(item);
  PartFile file(item.to.path, item.part_path);
  try {
    file.clear();
    file.write(content, 0);
    file.publish(durable);
  } catch (...) {
    file.discard();
    throw;
  }
}

void download(const std::shared_ptr<CopyRun>& run, const CopyItem& item) {
  make_parent(item);  // before anything travels
  if (item.source->length <= kSingleRequest)
    download_in_one(*run, item);
  else
    begin_ranged(run, item, 1);
}

std::string download_to_memory(s3::Client& client, const s3::ObjectName& object, const s3::ObjectInfo& info) {
  if (info.size <= kSingleRequest) return client.get_same(object, info);
  if (std::cmp_greater(info.size, available_memory()))
    throw IoError(
        fmt::format("'{}' has {} bytes, more than the {} bytes of memory that this process may have: "
                    "it is not read",
                    object.shown(), info.size, available_memory()));
  const auto part_size = parts_behind_etag(client, object, info, {});
  std::string content(info.size, '\0');
  std::exception_ptr failure;
  {
    Workers workers(8);
    run_parts(
        workers, count_of_parts(info.size, kRange),
        [&](int64_t index) {
          const int64_t offset = index * kRange;
          const std::string bytes =
              client.get_range(object, offset, std::min(kRange, info.size - offset), info.etag);
          bytes.copy(content.data() + offset, bytes.size());
        },
        [&](const std::exception_ptr& error) { failure = error; });
    workers.wait();
  }
  if (failure) std::rethrow_exception(failure);
  ContentCheck check(info, part_size);
  if (check.is_possible()) check.update(content);
  if (check.finish()) return content;
  const auto read = [&](int64_t offset, int64_t length) { return content.substr(offset, length); };
  if (!part_size || compare_by_other_parts(client, object, info, *part_size, read, {}) == ContentIs::kAnother)
    throw DataError(fmt::format("'{}' has arrived with another content than its {} says", object.shown(),
                                check.promise()));
  return content;
}

}  // namespace mox::file::internal
