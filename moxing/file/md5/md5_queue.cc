#include "moxing/file/md5/md5_queue.h"

#include <openssl/evp.h>

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/resource_limits.h"

namespace mox::file {
namespace {

// Below it a thread is done before others come.
constexpr size_t kShort = 64 << 10;
// All lanes take longer than OpenSSL takes for so many texts.
constexpr size_t kFew = 3;

void digest_one(std::string_view text, Md5Digest& digest) {
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  MOX_ASSERT(EVP_Digest(text.data(), text.size(), bytes, &length, EVP_md5(), nullptr) == 1 &&
                 length == digest.size(),
             "OpenSSL has MD5");
  std::copy_n(bytes, length, digest.begin());
}

}  // namespace

Md5Queue::Md5Queue(int most_at_once) : most_under_way_(std::max(most_at_once, 0)) {}

bool Md5Queue::may_begin() const { return under_way_ == 0 || under_way_ < most_under_way_; }

std::string Md5Queue::digest(std::string_view text) {
  Waiting mine{.text = text};
  if (text.size() < kShort) {
    digest_one(text, mine.digest);
  } else {
    std::unique_lock lock(mutex_);
    // Before others see `mine`: counting may throw. Who comes first goes on at once and needs no count.
    if (under_way_ > 0 && most_under_way_ == 0) most_under_way_ = available_cores();
    waiting_.push_back(&mine);
    while (!mine.done) {
      if (mine.taken || !may_begin())
        changed_.wait(lock);
      else
        digest_some(lock, mine);
    }
  }
  return {mine.digest.begin(), mine.digest.end()};
}

void Md5Queue::digest_some(std::unique_lock<std::mutex>& lock, Waiting& mine) {
  std::array<Waiting*, kMd5Lanes> taken{&mine};
  size_t count = 1;
  if (waiting_.size() <= kFew) {
    std::erase(waiting_, &mine);
  } else {
    count = std::min(taken.size(), waiting_.size());
    std::copy_n(waiting_.begin(), count, taken.begin());
    waiting_.erase(waiting_.begin(), waiting_.begin() + count);
  }
  for (size_t i = 0; i < count; ++i) taken[i]->taken = true;
  ++under_way_;
  lock.unlock();
  if (count == 1) {
    digest_one(mine.text, mine.digest);
  } else {
    std::array<std::string_view, kMd5Lanes> texts;
    std::array<Md5Digest, kMd5Lanes> digests;
    for (size_t i = 0; i < count; ++i) texts[i] = taken[i]->text;
    md5_of_each(std::span(texts).first(count), std::span(digests).first(count));
    for (size_t i = 0; i < count; ++i) taken[i]->digest = digests[i];
  }
  lock.lock();
  for (size_t i = 0; i < count; ++i) taken[i]->done = true;
  --under_way_;
  changed_.notify_all();
}

}  // namespace mox::file
