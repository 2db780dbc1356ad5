// Uploads in parts that are under way: those that an earlier attempt has begun, and a new one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <stop_token>
#include <string>

#include "moxing/file/s3/client.h"
#include "moxing/file/s3/documents.h"
#include "moxing/file/s3/store_error.h"

namespace mox::file::internal {

// How often a file's upload begins anew, from nothing, after another process has taken the one that was begun
// for a part of its own.
inline constexpr int kMostBeginnings = 3;

// Whether another process, which uploads to the same key, has overwritten a part, or ended the upload.
bool is_taken(const s3::StoreError& error);

struct BegunUpload {
  using Parts = std::map<int64_t, s3::ListedPart>;  // by number
  std::string id;
  Parts parts;          // that have arrived
  bool is_new = false;  // nobody else's
};

// The newest upload that is under way of whose parts `fits`; or a new one.
BegunUpload begin_upload(s3::Client& client, const s3::ObjectName& object, int64_t part_size,
                         const std::function<bool(const BegunUpload::Parts&)>& fits, std::stop_token stop);

}  // namespace mox::file::internal
