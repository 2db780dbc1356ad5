// Copies within a store, which makes them itself.
#include <fmt/format.h>

#include <algorithm>

#include "moxing/file/internal/copy_task.h"
#include "moxing/file/internal/object_name.h"
#include "moxing/file/internal/part_sizes.h"
#include "moxing/file/internal/uploads/parts_job.h"
#include "moxing/file/s3/digest.h"
#include "moxing/file/s3/etag.h"
#include "moxing/file/s3/store_error.h"
#include "runtime/base/error.h"

namespace mox::file::internal {
namespace {

bool has_version(s3::Client& client, const s3::ObjectName& from, const std::string& etag,
                 std::stop_token stop) {
  const auto found = client.head(from, stop);
  return found && s3::same_version(found->etag, etag);
}

std::string changed_text(const s3::ObjectName& from) {
  return fmt::format("'{}' has changed while it was copied", from.shown());
}

void require_version(s3::Client& client, const s3::ObjectName& from, const std::string& etag,
                     std::stop_token stop) {
  if (!has_version(client, from, etag, stop)) throw IoError(changed_text(from));
}

// Of a source that stays as it is. Swift refuses the condition of an object of parts, whose ETag it does not
// know by the name that it gives it, and none meets a weak one: then the source is looked at
// before and after.
std::string copy_steadily(s3::Client& client, const s3::ObjectName& from, const s3::ObjectName& to,
                          const std::string& etag, std::stop_token stop) {
  try {
    std::string made = client.copy(from, to, etag, stop);
    if (s3::is_weak(etag)) require_version(client, from, etag, stop);
    return made;
  } catch (const s3::StoreError& error) {
    if (error.status() != s3::kChangedStatus) throw;
    require_version(client, from, etag, stop);
  }
  std::string made = client.copy(from, to, "", stop);
  require_version(client, from, etag, stop);
  return made;
}

void copy_by_one_request(CopyRun& run, const CopyItem& item) {
  s3::Client& client = *run.client;
  const std::stop_token stop = run.options.stop;
  const s3::ObjectName from = object_name(item.from), to = object_name(item.to);
  const int64_t size = item.source->length;
  const std::string& etag = item.source->etag;
  const std::string made = copy_steadily(client, from, to, etag, stop);
  const auto found = client.head(to, stop);
  bool comparable = s3::is_md5(etag) && s3::is_md5(made) && found && !found->encrypted;
  if (comparable && made != etag) {
    // The source may be encrypted otherwise, which its listing does not say.
    const auto source = client.head(from, stop);
    comparable = !source || !source->encrypted;
  }
  if (!found || found->size != size || (comparable && made != etag))
    throw DataError(fmt::format("the store's copy '{}' is not like '{}'", to.shown(), from.shown()));
  run.sent(0);
  run.arrived(size, false, comparable || run.options.verify == Verify::kSize);
}

// What a store tells of the parts of an upload is their sizes, and nothing of where they are from: the size
// says it. Its last bits are drawn from the version of the source, so that parts of another one, or of a file
// of this machine, are not taken for its own.
int64_t smallest_part_of_copy(int64_t size, int64_t largest_copy) {
  return std::max(part_size_for(size), largest_copy / 10);
}

int64_t part_size_of_copy(const s3::ObjectName& from, const std::string& etag, int64_t size,
                          int64_t largest_copy) {
  const std::string digest = s3::md5(fmt::format("{}\n{}\n{}\n{}", from.bucket, from.key, etag, size));
  uint64_t number = 0;
  for (size_t i = 0; i < sizeof(number); ++i) number = number << 8 | static_cast<unsigned char>(digest[i]);
  const int64_t others = std::max<int64_t>(1, largest_copy / 10);
  return smallest_part_of_copy(size, largest_copy) + 1 + static_cast<int64_t>(number % others);
}

class PartsCopy : public PartsJob {
 public:
  PartsCopy(const std::shared_ptr<CopyRun>& run, const CopyItem& item)
      : PartsJob(run, item, item.source->length,
                 part_size_of_copy(object_name(item.from), item.source->etag, item.source->length,
                                   run->client->options().largest_copy)),
        from_(object_name(item.from)),
        etag_(item.source->etag),
        is_held_(s3::is_condition(etag_)) {
    if (!is_held_) forget_source();
  }

 private:
  bool may_go_on_from(const BegunUpload::Parts& parts) const override {
    return is_held_ && !parts.empty() && std::all_of(parts.begin(), parts.end(), [this](const auto& part) {
             return part.first <= count() && part.second.size == piece(part.first - 1).length;
           });
  }

  s3::Part send(const std::string& upload, const Piece& piece, const s3::ListedPart* there) override {
    if (there) {
      run_->continued(piece.length);
      return {piece.number, piece.length, {}, there->etag};
    }
    try {
      s3::Part part = run_->client->copy_part(from_, is_held_ ? etag_ : "", piece.offset, piece.length,
                                              object_, upload, piece.number, run_->options.stop);
      run_->sent(0);
      return part;
    } catch (const NotFound& gone) {
      throw SourceIsGone(fmt::format("'{}', or the bucket that it is copied to, is not there any more: {}",
                                     from_.shown(), gone.what()));
    } catch (const s3::StoreError& refused) {
      if (refused.status() == s3::kChangedStatus) require_known_version();
      throw;
    }
  }

  void require_same_source() override {
    if (!is_held_ && !etag_.empty()) require_known_version();
  }

  void require_known_version() const {
    if (!has_version(*run_->client, from_, etag_, run_->options.stop))
      throw SourceIsGone(changed_text(from_));
  }

  bool is_checked() const override { return run_->options.verify == Verify::kSize; }

  // The source is what it was, and the store refuses the condition all the same (copy_steadily).
  bool changes_way(const s3::StoreError& refused) override {
    if (refused.status() != s3::kChangedStatus || !is_held_) return false;
    is_held_ = false;
    forget_source();
    return true;
  }

  // Parts that are copied without a condition may be of several versions, which shows at the end alone: no
  // other copy goes on from them.
  void forget_source() {
    set_part_size(smallest_part_of_copy(item_.source->length, run_->client->options().largest_copy));
  }

  const s3::ObjectName from_;
  const std::string etag_;
  bool is_held_;  // by a condition of each request
};

}  // namespace

void copy_in_store(const std::shared_ptr<CopyRun>& run, const CopyItem& item) {
  if (item.source->length <= run->client->options().largest_copy) return copy_by_one_request(*run, item);
  require_object_size(item.source->length, to_string(item.from));
  std::make_shared<PartsCopy>(run, item)->begin();
}

}  // namespace mox::file::internal
