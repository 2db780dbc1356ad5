// One call of the store, before it is signed.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "moxing/file/s3/client.h"
#include "runtime/text/printable.h"

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

// The begin of what a server says, as it may be shown to people: no half character of UTF-8 at its end.
inline std::string shown_begin(std::string_view text) {
  constexpr size_t kMost = 500, kLongestCharacter = 4;
  size_t end = std::min(text.size(), kMost);
  const auto continues = [&](size_t at) { return at < text.size() && (text[at] & 0xc0) == 0x80; };
  while (continues(end) && end + kLongestCharacter > kMost + 1) --end;
  return printable(text.substr(0, end));
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
                                id.empty() ? "unknown" : shown_begin(id)));
  }
}

// The address of a bucket: "https" "host[:port]" "/bucket" (empty if the host has its name).
struct Client::Place {
  std::string scheme, host, path;
};

}  // namespace mox::file::s3
