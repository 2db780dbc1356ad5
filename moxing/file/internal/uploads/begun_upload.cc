#include "moxing/file/internal/uploads/begun_upload.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace mox::file::internal {
namespace {

std::vector<s3::ListedUpload> uploads_under_way(s3::Client& client, const s3::ObjectName& object,
                                                std::stop_token stop) {
  try {
    return client.uploads_of(object, stop);
  } catch (const s3::StoreError& error) {
    // Without the right to list uploads there is nothing to go on from.
    if (error.status() != 403 && error.status() != 501) throw;
    return {};
  }
}

std::optional<BegunUpload::Parts> parts_that_arrived(s3::Client& client, const s3::ObjectName& object,
                                                     const std::string& id, std::stop_token stop) {
  try {
    BegunUpload::Parts parts;
    for (s3::ListedPart& part : client.parts_of(object, id, stop)) parts[part.number] = std::move(part);
    return parts;
  } catch (const s3::StoreError& error) {
    if (error.code() != "NoSuchUpload") throw;
    return std::nullopt;  // listed, but gone
  }
}

// What cannot be ended costs room in the store, and is no reason to give up the upload that was begun.
void end_unknown_uploads(s3::Client& client, const s3::ObjectName& object, const std::set<std::string>& known,
                         std::stop_token stop) {
  try {
    for (const s3::ListedUpload& other : uploads_under_way(client, object, stop))
      if (!known.contains(other.id)) client.abort(object, other.id);
  } catch (const Error& failed) {
    log_warning(
        fmt::format("an upload in parts of '{}' whose begin was asked for twice may stay in the store: {}",
                    object.shown(), failed.what()));
  }
}

}  // namespace

bool is_taken(const s3::StoreError& error) {
  return error.code() == "InvalidPart" || error.code() == "NoSuchUpload";
}

BegunUpload begin_upload(s3::Client& client, const s3::ObjectName& object, int64_t part_size,
                         const std::function<bool(const BegunUpload::Parts&)>& fits, std::stop_token stop) {
  std::vector<s3::ListedUpload> before = uploads_under_way(client, object, stop);
  std::stable_sort(before.begin(), before.end(),
                   [](const auto& a, const auto& b) { return a.initiated > b.initiated; });
  for (const s3::ListedUpload& upload : before)
    if (auto parts = parts_that_arrived(client, object, upload.id, stop); parts && fits(*parts))
      return {.id = upload.id, .parts = *std::move(parts)};
  const int64_t repeated = client.repeated_requests();
  BegunUpload upload{.id = client.create_upload(object, part_size, stop), .parts = {}, .is_new = true};
  if (client.repeated_requests() != repeated) {
    // An answer may have been lost: then there is an upload that nobody knows.
    std::set<std::string> known{upload.id};
    for (const s3::ListedUpload& other : before) known.insert(other.id);
    end_unknown_uploads(client, object, known, stop);
  }
  return upload;
}

}  // namespace mox::file::internal
