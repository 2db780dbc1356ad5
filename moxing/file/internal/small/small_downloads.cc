#include "moxing/file/internal/small/small_downloads.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "moxing/file/internal/object_name.h"
#include "moxing/file/internal/small/nameless_file.h"
#include "moxing/file/md5/md5_lanes.h"
#include "moxing/file/s3/digest.h"

namespace mox::file::internal {
namespace {

// A longer one is worth a thread of its own.
constexpr int64_t kLongest = 256 << 10;
// All lanes take longer than OpenSSL takes for so many texts.
constexpr size_t kFew = 3;

void digest_all(std::span<const std::string_view> texts, std::span<std::string> digests) {
  if (texts.size() <= kFew) {
    std::ranges::transform(texts, digests.begin(), s3::md5);
    return;
  }
  std::array<Md5Digest, kMd5Lanes> made;
  md5_of_each(texts, std::span(made).first(texts.size()));
  std::transform(made.begin(), made.begin() + texts.size(), digests.begin(),
                 [](const Md5Digest& digest) { return std::string(digest.begin(), digest.end()); });
}

}  // namespace

bool SmallDownloads::takes(const CopyRun& run, const CopyItem& item) {
  return item.source->length <= kLongest && !run.options.durable;
}

void SmallDownloads::add(const std::shared_ptr<CopyRun>& run, CopyItem item) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::make_shared<Download>(Download{run, std::move(item), {}}));
  }
  begin_some();
}

void SmallDownloads::begin_some() {
  for (;;) {
    std::shared_ptr<Download> next;
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.empty() || under_way_ >= waiting_.front()->run->options.threads) return;
      next = std::move(waiting_.front());
      waiting_.pop_front();
      ++under_way_;
    }
    try {
      begin(next);
    } catch (...) {
      next->run->missing(next->item, std::current_exception());
      change_under_way(-1);
    }
  }
}

void SmallDownloads::begin(const std::shared_ptr<Download>& download) {
  CopyRun& run = *download->run;
  if (!run.may_begin(download->item.name)) return change_under_way(-1);
  run.workers.expect();
  try {
    run.client->begin_get(
        object_name(download->item.from), download->item.source->length,
        // A plain capture of the reference would be const, and so copied, not moved.
        [self = shared_from_this(), download = download](s3::HttpAttempt attempt) mutable {
          self->ended(std::move(download), std::move(attempt));
        },
        run.options.stop);
  } catch (...) {
    run.workers.arrived(1);
    throw;
  }
}

void SmallDownloads::ended(std::shared_ptr<Download>&& download, s3::HttpAttempt attempt) {
  download->attempt = std::move(attempt);
  // As long as nobody can take it, the workers expect it, and are there.
  const std::lock_guard lock(mutex_);
  Workers& workers = download->run->workers;
  ended_.push_back(std::move(download));
  if (takers_ > 0 && ended_.size() < kMd5Lanes) return;
  ++takers_;
  workers.add_first([self = shared_from_this()] { self->take_ended(); });
}

void SmallDownloads::take_ended() {
  for (;;) {
    std::vector<std::shared_ptr<Download>> batch;
    {
      const std::lock_guard lock(mutex_);
      const size_t count = std::min(ended_.size(), kMd5Lanes);
      if (count == 0) {
        --takers_;
        return;
      }
      batch.assign(std::move_iterator(ended_.begin()), std::move_iterator(ended_.begin() + count));
      ended_.erase(ended_.begin(), ended_.begin() + count);
    }
    const auto run = batch.front()->run;
    finish(batch);
    run->workers.arrived(static_cast<int>(batch.size()));
  }
}

void SmallDownloads::finish(Batch batch) {
  std::vector<std::shared_ptr<Download>> good;
  std::vector<std::string_view> texts;
  std::vector<std::string> promised;
  for (const std::shared_ptr<Download>& download : batch) {
    std::string md5 = s3::Client::md5_promised_by(download->attempt, download->item.source->length);
    if (md5.empty()) {
      go_on_alone(download);
      continue;
    }
    good.push_back(download);
    texts.emplace_back(download->attempt.response.body);
    promised.push_back(std::move(md5));
  }
  // The next ones travel while these are written.
  change_under_way(-static_cast<int>(good.size()));
  begin_some();
  std::vector<std::string> digests(good.size());
  digest_all(texts, digests);
  for (size_t i = 0; i < good.size(); ++i) {
    CopyRun& run = *good[i]->run;
    CopyItem& item = good[i]->item;
    if (s3::hex(digests[i]) != promised[i]) {
      change_under_way(1);
      go_on_alone(good[i]);
      continue;
    }
    try {
      hold_directory_of(run, item);
      if (!write_nameless(item.to.path, texts[i])) write_whole(item, texts[i], false);
      run.sent(item.source->length);
      run.arrived(item.source->length, false, true);
    } catch (...) {
      run.missing(item, std::current_exception());
    }
  }
}

void SmallDownloads::go_on_alone(const std::shared_ptr<Download>& download) {
  download->run->workers.add_first([self = shared_from_this(), download] {
    try {
      hold_directory_of(*download->run, download->item);
      download_in_one(*download->run, download->item, std::move(download->attempt));
    } catch (...) {
      download->run->missing(download->item, std::current_exception());
    }
    self->change_under_way(-1);
    self->begin_some();
  });
}

void SmallDownloads::change_under_way(int by) {
  const std::lock_guard lock(mutex_);
  under_way_ += by;
}

}  // namespace mox::file::internal
