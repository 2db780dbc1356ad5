// How large files are cut, and what the cuts mean for ETags.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "moxing/file/s3/client.h"
#include "moxing/file/s3/digest.h"
#include "moxing/file/stored_object.h"

namespace mox::file::internal {

// Files up to kSingleRequest travel in one request (stored_object.h). Ranges of downloads whose parts are
// unknown or larger than the latter.
constexpr int64_t kRange = 8 << 20;
constexpr int64_t kLongestRange = 64 << 20;

// What stores take: 10,000 parts, each but the last of at least 5 MiB; 5 TiB in all.
constexpr int64_t kMostParts = 10'000;
constexpr int64_t kLargestObject = int64_t{5} << 40;

// Throws InvalidArgument for more than a store takes. `name`: of what is to become an object.
void require_object_size(int64_t size, const std::string& name);

// The size of a part of an upload: 8 MiB, or whole MiB such that there are at most 10,000.
int64_t part_size_for(int64_t size);

inline int64_t count_of_parts(int64_t size, int64_t part_size) { return (size + part_size - 1) / part_size; }

// The number of parts that an ETag tells of ("...-12"); 0 for any other.
int64_t parts_in_etag(std::string_view etag);

// The ETag of content that comes in order, piece by piece, and has parts of one size (0: a plain MD5) or of
// the sizes that are given for each.
class EtagHasher {
 public:
  explicit EtagHasher(int64_t part_size) : part_size_(part_size) {}
  explicit EtagHasher(std::vector<int64_t> part_sizes) : part_size_(-1), part_sizes_(std::move(part_sizes)) {}
  void update(std::string_view bytes);
  std::string finish();

 private:
  int64_t size_of_this_part() const;

  const int64_t part_size_;  // of all but the last
  const std::vector<int64_t> part_sizes_;
  int64_t in_part_ = 0;
  s3::Md5 md5_;
  std::vector<std::string> parts_;
};

// The content of an object, in order, against what its store says of it: the ETag, if it is known of which
// parts that was made (EtagHasher), else the checksum.
class ContentCheck {
 public:
  ContentCheck(const s3::ObjectInfo& info, std::optional<int64_t> part_size);
  // `part_sizes`: of each; none: unknown.
  ContentCheck(const s3::ObjectInfo& info, const std::vector<int64_t>& part_sizes);
  bool is_possible() const { return etag_ || checksum_; }
  void update(std::string_view bytes);
  bool finish();                // whether it was that content
  std::string promise() const;  // for messages: "ETag ..."

 private:
  const std::string said_etag_;
  const s3::Checksum said_checksum_;
  std::optional<EtagHasher> etag_;
  std::optional<s3::ChecksumHasher> checksum_;
};

}  // namespace mox::file::internal
