#include "moxing/file/internal/part_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "runtime/base/error.h"

namespace mox::file::internal {

void require_object_size(int64_t size, const std::string& name) {
  if (size > kLargestObject)
    throw InvalidArgument(
        fmt::format("'{}' has {} bytes; an object has at most {}", name, size, kLargestObject));
}

int64_t part_size_for(int64_t size) {
  constexpr int64_t kSmallestPart = 8 << 20, kMebibyte = 1 << 20;
  const int64_t needed = count_of_parts(size, kMostParts);
  return std::max(kSmallestPart, count_of_parts(needed, kMebibyte) * kMebibyte);
}

int64_t parts_in_etag(std::string_view etag) {
  if (etag.size() < 34 || etag[32] != '-' || s3::from_hex(etag.substr(0, 32)).empty()) return 0;
  const std::string_view digits = etag.substr(33);
  int64_t count = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  return error == std::errc() && end == digits.data() + digits.size() && count >= 1 && count <= kMostParts
             ? count
             : 0;
}

int64_t EtagHasher::size_of_this_part() const {
  return part_sizes_.empty() ? part_size_ : part_sizes_.at(parts_.size());
}

void EtagHasher::update(std::string_view bytes) {
  if (part_size_ == 0) return md5_.update(bytes);
  while (!bytes.empty()) {
    const size_t piece = std::min<int64_t>(size_of_this_part() - in_part_, bytes.size());
    md5_.update(bytes.substr(0, piece));
    bytes.remove_prefix(piece);
    in_part_ += piece;
    if (in_part_ == size_of_this_part()) {
      parts_.push_back(md5_.finish());
      in_part_ = 0;
    }
  }
}

std::string EtagHasher::finish() {
  if (part_size_ == 0) return s3::hex(md5_.finish());
  if (in_part_ > 0) parts_.push_back(md5_.finish());
  return s3::etag_of_parts(parts_);
}

ContentCheck::ContentCheck(const s3::ObjectInfo& info, std::optional<int64_t> part_size)
    : said_etag_(info.etag), said_checksum_(info.checksum) {
  if (part_size)
    etag_.emplace(*part_size);
  else if (said_checksum_)
    checksum_.emplace(said_checksum_.kind);
}

ContentCheck::ContentCheck(const s3::ObjectInfo& info, const std::vector<int64_t>& part_sizes)
    : said_etag_(info.etag), said_checksum_(info.checksum) {
  if (!part_sizes.empty())
    etag_.emplace(part_sizes);
  else if (said_checksum_)
    checksum_.emplace(said_checksum_.kind);
}

void ContentCheck::update(std::string_view bytes) {
  if (etag_) etag_->update(bytes);
  if (checksum_) checksum_->update(bytes);
}

bool ContentCheck::finish() {
  return (!etag_ || etag_->finish() == said_etag_) &&
         (!checksum_ || checksum_->finish() == said_checksum_.base64);
}

std::string ContentCheck::promise() const { return checksum_ ? shown(said_checksum_) : "ETag " + said_etag_; }

}  // namespace mox::file::internal
