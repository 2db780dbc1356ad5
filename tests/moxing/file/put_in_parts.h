// An object of parts as another tool makes it: of any sizes that a store takes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "moxing/file/s3/client.h"
#include "moxing/file/s3/digest.h"
#include "tests/moxing/file/store_fixture.h"

namespace mox::file {

// Returns its content. `said_size`: what its metadata says of the size of its parts; 0: nothing that is one.
inline std::string put_in_parts(s3::Client& client, const s3::ObjectName& object,
                                const std::vector<int64_t>& sizes, int64_t said_size = 0) {
  const std::string upload = client.create_upload(object, said_size);
  std::string content;
  std::vector<s3::Part> parts;
  for (const int64_t size : sizes) {
    const int number = static_cast<int>(parts.size()) + 1;
    const std::string bytes = random_bytes(static_cast<size_t>(size), static_cast<unsigned>(number));
    parts.push_back(client.upload_part(object, upload, number, bytes, s3::md5(bytes)));
    content += bytes;
  }
  client.complete(object, upload, parts);
  return content;
}

}  // namespace mox::file
