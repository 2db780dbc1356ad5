#include "moxing/file/streams/streamed_objects.h"

#include <fmt/format.h>

#include <atomic>
#include <mutex>

#include "moxing/file/s3/etag.h"
#include "moxing/file/s3/store_error.h"
#include "moxing/file/store_client.h"
#include "moxing/file/stored_object.h"
#include "moxing/file/streams/internal/stream_buffer.h"

namespace mox::file {
namespace {

using internal::StreamBuffer;

constexpr int64_t kMostWhole = int64_t{256} << 20;

// The size of objects to come is not known before; those that came tell.
std::atomic<int64_t>& expected_size() {
  static std::atomic<int64_t> size{256 << 10};
  return size;
}

int64_t next_set() {
  static std::atomic<int64_t> number{0};
  return number++;
}

std::string listed_etag(const s3::ObjectName& object, const std::stop_token& stop) {
  const s3::Listing listing = store_client()->list_some(object, "", 1, stop);
  return listing.objects.empty() || listing.objects[0].key != object.key ? "" : listing.objects[0].etag;
}

std::string present_etag(const s3::ObjectName& object, const std::stop_token& stop) {
  const auto found = store_client()->head(object, stop);
  return found ? found->etag : "";
}

}  // namespace

struct StreamedObjects::Versions {
  explicit Versions(std::vector<std::string> listed)
      : etags(std::move(listed)), is_listed(etags.size(), true) {}

  // Among all that lies in the memory of the process.
  std::string key(int64_t index) const { return fmt::format("{} of set {}", index, set); }

  static StreamBuffer::Request request(const std::shared_ptr<Versions>& self, int64_t index,
                                       const std::string& url) {
    return {.keys = {self->key(index)},
            .bytes = expected_size().load(),
            .fetch = [self, index, url](std::stop_token stop) {
              const s3::ObjectName object = object_of(url);
              s3::ObjectInfo info;
              std::string content = store_client()->get(object, kMostWhole, &info, stop);
              self->require_known(index, object, info.etag, stop);
              const int64_t size = content.size();
              expected_size().store((7 * expected_size().load() + size) / 8 + 1);
              std::vector<std::string> contents;
              contents.push_back(std::move(content));
              return contents;
            }};
  }

  // Throws if `arrived` ("": the answer had none) is not the ETag that the object had; notes it if
  // none is known.
  void require_known(size_t index, const s3::ObjectName& object, const std::string& arrived,
                     const std::stop_token& stop) {
    std::unique_lock lock(mutex);
    const std::string known = etags[index];
    const bool listed = is_listed[index];
    lock.unlock();
    if (s3::same_version(known, arrived)) return;
    if (!known.empty() && (listed || arrived.empty())) {
      // Some stores list an object that was uploaded in parts with another ETag than they send it with, and
      // an answer without one does not say whose it is.
      const std::string now = listed ? listed_etag(object, stop) : present_etag(object, stop);
      if (!s3::same_version(now, known))
        throw s3::changed_object(object.shown(), known, arrived.empty() ? now : arrived);
    } else if (!known.empty()) {
      throw s3::changed_object(object.shown(), known, arrived);
    }
    if (arrived.empty()) return;
    lock.lock();
    // Another request may have noted one meanwhile.
    if (etags[index] != known && !s3::same_version(etags[index], arrived))
      throw s3::changed_object(object.shown(), etags[index], arrived);
    etags[index] = arrived;
    is_listed[index] = false;
  }

  const int64_t set = next_set();
  std::mutex mutex;  // of what follows
  std::vector<std::string> etags;
  std::vector<bool> is_listed;
};

StreamedObjects::StreamedObjects(std::vector<std::string> etags)
    : versions_(std::make_shared<Versions>(std::move(etags))) {}

std::shared_ptr<const std::string> StreamedObjects::read(int64_t index, const std::string& url) const {
  return StreamBuffer::of_process().take(versions_->key(index),
                                         [&] { return Versions::request(versions_, index, url); });
}

void StreamedObjects::will_read(int64_t index, const std::string& url) const {
  StreamBuffer& buffer = StreamBuffer::of_process();
  if (!buffer.has(versions_->key(index))) buffer.announce(Versions::request(versions_, index, url));
}

}  // namespace mox::file
