// Objects of the store for rooms that read them in their own way: found by URL, and checked as they arrive.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "moxing/file/s3/client.h"

namespace mox::file {

namespace internal {
class ContentCheck;
}

// Files up to this size travel in one request.
constexpr int64_t kSingleRequest = 16 << 20;

// What the store's client calls the object of a URL. Throws InvalidArgument for what is none (file.h).
s3::ObjectName object_of(const std::string& url);

// An object as the store has described it.
struct StoredObject {
  s3::ObjectName name;
  s3::ObjectInfo info;
};

// Throws NotFound, which says so where there is no such bucket, and FailedPrecondition for a directory.
StoredObject find_object(s3::Client& client, const std::string& url, bool with_checksum);

// The content of an object that comes in order, piece by piece, against what the store has said of it: its
// checksum, or its ETag where it is known of which parts that was made (the store may be asked).
class ArrivingContent {
 public:
  // `object`: found with its checksum.
  ArrivingContent(std::shared_ptr<s3::Client> client, StoredObject object);
  ~ArrivingContent();

  void add(std::string_view bytes);
  // All has come. Throws DataError if it was another content.
  void finish();

 private:
  std::shared_ptr<s3::Client> client_;
  StoredObject object_;
  std::optional<int64_t> part_size_;  // by which its ETag is compared
  std::unique_ptr<internal::ContentCheck> check_;
};

}  // namespace mox::file
