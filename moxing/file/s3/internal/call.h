// One call of the store, before it is signed.
#pragma once

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
  bool success_may_be_error = false;  // a 200 may have an <Error> in it
};

// The address of a bucket: "https" "host[:port]" "/bucket" (empty if the host has its name).
struct Client::Place {
  std::string scheme, host, path;
};

}  // namespace mox::file::s3
