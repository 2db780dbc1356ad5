// Objects of a store, as its client names them.
#pragma once

#include "moxing/file/internal/url.h"
#include "moxing/file/s3/client.h"

namespace mox::file::internal {

// What the store's client calls the object of a remote URL.
inline s3::ObjectName object_name(const Url& url) {
  return {.bucket = url.bucket, .key = url.path, .scheme = url.scheme};
}

}  // namespace mox::file::internal
