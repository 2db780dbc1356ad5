#include "moxing/file/s3/store_options.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "runtime/base/error.h"
#include "runtime/base/nearest_name.h"

namespace mox::file::s3 {
namespace {

std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);
  if (!value || !*value) return std::nullopt;
  return std::string(value);
}

std::optional<bool> environment_switch(const char* name) {
  const auto value = environment(name);
  if (!value) return std::nullopt;
  if (*value == "1" || *value == "true" || *value == "True" || *value == "yes") return true;
  if (*value == "0" || *value == "false" || *value == "False" || *value == "no") return false;
  throw ConfigError(fmt::format("the environment says {}='{}'; expected 0 or 1", name, *value));
}

// It becomes a part of a header, and with AWS of the host.
void require_region(const std::string& region) {
  for (const char c : region)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
          c == '_' || c == '.'))
      throw ConfigError(
          "the region of the object store (S3_REGION, AWS_REGION, file.region) has a character in it that is "
          "no letter, digit, '-', '_' or '.' (a space or a line break?)");
}

// With a scheme, without a slash at the end.
std::string complete_endpoint(std::string endpoint, bool use_https) {
  if (const size_t colon = endpoint.find("://"); colon != std::string::npos)
    endpoint = mox::internal::lower_case(endpoint.substr(0, colon)) + endpoint.substr(colon);
  if (endpoint.find("://") == std::string::npos) endpoint = (use_https ? "https://" : "http://") + endpoint;
  while (endpoint.ends_with('/')) endpoint.pop_back();
  const std::string_view rest = std::string_view(endpoint).substr(endpoint.find("://") + 3);
  if (!(endpoint.starts_with("https://") || endpoint.starts_with("http://")) || rest.empty() ||
      rest.find_first_of("/?#@ ") != std::string_view::npos)
    throw ConfigError(
        "the endpoint of the object store (S3_ENDPOINT, file.endpoint) is not http[s]://HOST[:PORT]");
  return endpoint;
}

}  // namespace

StoreOptions options_from_environment(StoreOptions options) {
  for (const char* name : {"S3_ENDPOINT", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"})
    if (options.endpoint.empty()) options.endpoint = environment(name).value_or("");
  const bool use_https = environment_switch("S3_USE_HTTPS").value_or(true);
  if (!options.endpoint.empty()) options.endpoint = complete_endpoint(options.endpoint, use_https);
  if (const auto verify = environment_switch("S3_VERIFY_SSL"); verify && !*verify) options.verify_tls = false;
  if (options.ca_file.empty()) options.ca_file = environment("AWS_CA_BUNDLE").value_or("");
  for (const char* name : {"S3_REGION", "AWS_REGION", "AWS_DEFAULT_REGION"})
    if (options.region.empty()) options.region = environment(name).value_or("");
  require_region(options.region);
  return options;
}

}  // namespace mox::file::s3
