#include "moxing/file/internal/parts/parts_behind_etag.h"

#include <algorithm>

#include "moxing/file/internal/part_sizes.h"

namespace mox::file::internal {

std::optional<int64_t> parts_behind_etag(s3::Client& client, const s3::ObjectName& object,
                                         const s3::ObjectInfo& info, std::stop_token stop) {
  if (info.encrypted) return std::nullopt;
  if (s3::is_md5(info.etag)) return 0;
  const int64_t count = parts_in_etag(info.etag);
  if (count == 0) return std::nullopt;
  const auto fits = [&](int64_t size) {
    return size > 0 && std::max<int64_t>(1, count_of_parts(info.size, size)) == count;
  };
  if (fits(info.part_size)) return info.part_size;
  const int64_t first = count == 1 ? std::max<int64_t>(1, info.size) : client.size_of_part(object, 1, stop);
  if (fits(first)) return first;
  return std::nullopt;
}

std::optional<std::vector<int64_t>> other_parts_behind_etag(s3::Client& client, const s3::ObjectName& object,
                                                            const s3::ObjectInfo& info, int64_t guessed,
                                                            std::stop_token stop) {
  std::vector<int64_t> sizes;
  int64_t left = info.size;
  bool differ = false;
  for (int64_t number = 1; number < parts_in_etag(info.etag); ++number) {
    const int64_t size = client.size_of_part(object, static_cast<int>(number), stop);
    // What this client has written beside its own parts is more than a guess where nobody says otherwise.
    if (size == 0 && guessed == info.part_size) return std::nullopt;
    if (size == 0) return std::vector<int64_t>();
    if (size >= left) return std::nullopt;  // such parts are of an object that has taken its place
    sizes.push_back(size);
    left -= size;
    differ = differ || size != guessed;
  }
  if (!differ) return std::nullopt;
  sizes.push_back(left);
  return sizes;
}

ContentIs compare_by_other_parts(s3::Client& client, const s3::ObjectName& object, const s3::ObjectInfo& info,
                                 int64_t guessed, const std::function<std::string(int64_t, int64_t)>& read,
                                 std::stop_token stop) {
  const auto sizes = other_parts_behind_etag(client, object, info, guessed, stop);
  if (!sizes) return ContentIs::kAnother;
  ContentCheck check(info, *sizes);
  if (!check.is_possible()) return ContentIs::kUnknown;
  for (int64_t at = 0; at < info.size; at += kRange) check.update(read(at, std::min(kRange, info.size - at)));
  return check.finish() ? ContentIs::kAsSaid : ContentIs::kAnother;
}

}  // namespace mox::file::internal
