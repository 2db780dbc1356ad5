#include "moxing/file/internal/uploads/parts_job.h"

#include <fmt/format.h>

#include <algorithm>

#include "moxing/file/internal/object_name.h"
#include "moxing/file/internal/part_sizes.h"
#include "runtime/base/log.h"

namespace mox::file::internal {

PartsJob::PartsJob(std::shared_ptr<CopyRun> run, CopyItem item, int64_t size, int64_t part_size)
    : run_(std::move(run)), item_(std::move(item)), object_(object_name(item_.to)), size_(size) {
  set_part_size(part_size);
}

void PartsJob::set_part_size(int64_t part_size) {
  part_size_ = part_size;
  parts_.assign(count_of_parts(size_, part_size), {});
}

PartsJob::Piece PartsJob::piece(int64_t index) const {
  const int64_t offset = index * part_size_;
  return {static_cast<int>(index) + 1, offset, std::min(part_size_, size_ - offset)};
}

// Goes on from what an earlier attempt has sent.
void PartsJob::begin() {
  begun_ = begin_upload(
      *run_->client, object_, part_size_, [this](const auto& parts) { return may_go_on_from(parts); },
      run_->options.stop);
  if (begun_.is_new) made_.push_back(begun_.id);
  send_all();
}

// The upload before is somebody else's, too. Those that are under way are not looked for: their parts may be
// of other contents.
void PartsJob::begin_anew() {
  begun_ = {.id = run_->client->create_upload(object_, part_size_, run_->options.stop),
            .parts = {},
            .is_new = true};
  made_.push_back(begun_.id);
  ++beginnings_;
  send_all();
}

void PartsJob::send_all() {
  run_parts(
      run_->workers, count(),
      [job = shared_from_this()](int64_t index) {
        if (job->run_->options.stop.stop_requested()) throw s3::Cancelled("cancelled");
        const auto there = job->begun_.parts.find(index + 1);
        job->parts_[index] = job->send(job->begun_.id, job->piece(index),
                                       there == job->begun_.parts.end() ? nullptr : &there->second);
      },
      [job = shared_from_this()](const std::exception_ptr& error) { job->end(error); });
}

void PartsJob::end(const std::exception_ptr& error) {
  try {
    if (error) std::rethrow_exception(error);
    require_same_source();
    run_->client->complete(object_, begun_.id, parts_, run_->options.stop);
  } catch (const s3::Cancelled& cancelled) {
    return give_up(cancelled.what());
  } catch (const SourceIsGone& gone) {
    return give_up(gone.what());
  } catch (const s3::StoreError& refused) {
    if ((is_taken(refused) && beginnings_ < kMostBeginnings) || changes_way(refused)) return try_anew();
    return fail(std::current_exception());
  } catch (...) {
    return fail(std::current_exception());
  }
  take_back_others();
  run_->arrived(size_, false, is_checked());
}

void PartsJob::try_anew() {
  run_->workers.add_first([job = shared_from_this()] {
    try {
      job->begin_anew();
    } catch (const s3::Cancelled& cancelled) {
      job->give_up(cancelled.what());
    } catch (...) {
      job->fail(std::current_exception());
    }
  });
}

// One that was there before may be another process's.
void PartsJob::give_up(std::string why) {
  if (!begun_.is_new) why += "; the upload in parts that was begun before stays in the store";
  if (const std::string left = take_back(""); !left.empty())
    why += fmt::format("; its upload in parts stays in the store: {}", left);
  run_->missing(item_.name, why);
}

// The same copy goes on from the parts that have arrived.
void PartsJob::fail(const std::exception_ptr& error) {
  take_back_others();
  run_->missing(item_, error);
}

void PartsJob::take_back_others() {
  if (const std::string left = take_back(begun_.id); !left.empty())
    log_warning(fmt::format("an upload in parts of '{}' stays in the store: {}", object_.shown(), left));
}

// Ends the uploads that were begun here, but for `kept`. Why that could not be; "": it could.
std::string PartsJob::take_back(const std::string& kept) {
  std::string left;
  for (const std::string& id : made_) {
    if (id == kept) continue;
    try {
      run_->client->abort(object_, id);
    } catch (const std::exception& failed) {
      left += (left.empty() ? "" : "; ") + std::string(failed.what());
    }
  }
  return left;
}

}  // namespace mox::file::internal
