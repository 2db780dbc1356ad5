// The credentials that a cloud machine has: the instance metadata service, version 2.
#include <fmt/format.h>

#include <cstdlib>

#include "moxing/file/s3/client.h"
#include "moxing/file/s3/retry.h"

namespace mox::file::s3 {
namespace {

std::string metadata_address() {
  const char* other = std::getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  std::string address = other && *other ? other : "http://169.254.169.254";
  while (address.ends_with('/')) address.pop_back();
  return address;
}

std::string answer_of(HttpClient& http, const HttpRequest& request) {
  HttpResponse response = http.perform(request);
  if (worth_repeating(response.status, ""))
    throw TransportError(
        fmt::format("the instance metadata service has answered with status {}", response.status), true);
  if (response.status != 200)
    throw IoError(
        fmt::format("the instance metadata service has answered with status {}; has the machine a role?",
                    response.status));
  return std::move(response.body);
}

}  // namespace

TemporaryCredentials ask_instance_metadata() {
  HttpClient http({.connections = 1, .connect_timeout_s = 2, .stall_s = 5, .use_proxy = false});
  const std::string address = metadata_address();
  const std::string token = answer_of(http, {.method = "PUT",
                                             .url = address + "/latest/api/token",
                                             .headers = {{"x-aws-ec2-metadata-token-ttl-seconds", "21600"}}});
  const NamesAndValues headers = {{"x-aws-ec2-metadata-token", token}};
  const std::string roles = address + "/latest/meta-data/iam/security-credentials/";
  std::string role = answer_of(http, {.url = roles, .headers = headers});
  role = role.substr(0, role.find_first_of("\r\n"));
  return parse_metadata_credentials(answer_of(http, {.url = roles + role, .headers = headers}));
}

}  // namespace mox::file::s3
