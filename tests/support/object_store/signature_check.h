// Whether a request is signed as AWS's Signature Version 4 wants it. From what arrived, by code of its own:
// what the client thinks that it has sent does not count.
#pragma once

#include <ctime>
#include <map>
#include <string>
#include <string_view>

namespace mox::testing_store {

struct ArrivedRequest {
  std::string method;
  std::string target;                          // "/bucket/key?query" as it arrived
  std::map<std::string, std::string> headers;  // names in lower case
  std::string_view body;
};

struct Keys {
  std::string access = "AKTESTKEY00000000001";
  std::string secret = "test/secret+ZZZ0123456789abcdefghijklmnopq";
  std::string session_token;  // empty: none is expected
  std::string region = "us-east-1";
};

// The code of S3's refusal ("SignatureDoesNotMatch"); empty: it is signed well.
std::string signature_trouble(const ArrivedRequest& request, const Keys& keys, std::time_t now);

}  // namespace mox::testing_store
