// Signatures of requests: "AWS Signature Version 4" for S3, where a key is encoded once and dots in it stay.
// https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
#pragma once

#include <ctime>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mox::file::s3 {

struct Credentials {
  std::string access_key;
  std::string secret_key;
  std::string session_token;  // empty: none
  bool empty() const { return access_key.empty(); }
};

using NamesAndValues = std::vector<std::pair<std::string, std::string>>;

struct RequestToSign {
  std::string method;
  std::string path;            // as it is sent: encoded, begins with "/"
  NamesAndValues query;        // not encoded
  NamesAndValues headers;      // names in lower case, "host" among them; all of them are signed
  std::string payload_sha256;  // 64 hexadecimal digits, or "UNSIGNED-PAYLOAD"
};

// The parameters as they are sent and signed: encoded, sorted, without "?".
std::string encoded_query(const NamesAndValues& query);

// The key that requests of one secret, region and day are signed with: four HMACs, made once for all of them.
// Threads: any number.
class SigningKey {
 public:
  std::string get(const std::string& secret_key, std::string_view region, const std::string& date);

 private:
  std::mutex mutex_;
  std::string secret_key_, region_, date_, key_;
};

// Adds the headers x-amz-date, x-amz-content-sha256, x-amz-security-token (if there is
// one) and authorization.
void sign(RequestToSign& request, const Credentials& credentials, std::string_view region, std::time_t now,
          SigningKey& key);

// The text that is signed; for tests against published examples.
std::string canonical_request(const RequestToSign& request);

}  // namespace mox::file::s3
