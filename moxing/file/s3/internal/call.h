// One call of the store, before it is signed.
#pragma once

#include <fmt/format.h>

#include <string>

#include "moxing/file/s3/client.h"

namespace mox::file::s3 {

struct Client::Call {
  std::string operation;  // for messages: "PutObject"
  std::string method;
  ObjectName object;  // an empty key: the bucket
  NamesAndValues query = {};
  NamesAndValues headers = {};
  std::string_view body = {};
  int64_t most_bytes = 64 << 20;
  bool body_is_object = false;  // else a 200 may have an <Error> in it
};

// What a server says, as it may be shown to people.
inline std::string printable(const std::string& text) {
  std::string shown;
  for (const char c : text.substr(0, 500))
    shown += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  return shown;
}

// What `parse` makes of the document that a call was answered with. DataError that says which one.
template <typename Call, typename Parse>
auto read_document(const Call& call, const HttpResponse& response, Parse&& parse) {
  try {
    return parse(response.body);
  } catch (const DataError& error) {
    const std::string id = response.header("x-amz-request-id");
    throw DataError(fmt::format("{} of '{}': {} (status {}, {} bytes, request id {})", call.operation,
                                call.object.shown(), error.what(), response.status, response.body.size(),
                                id.empty() ? "unknown" : printable(id)));
  }
}

// The address of a bucket: "https" "host[:port]" "/bucket" (empty if the host has its name).
struct Client::Place {
  std::string scheme, host, path;
};

}  // namespace mox::file::s3
