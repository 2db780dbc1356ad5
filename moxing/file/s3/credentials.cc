#include "moxing/file/s3/credentials.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/nearest_name.h"
#include "runtime/text/utf8.h"

namespace mox::file::s3 {
namespace {

// An answer of the metadata service has some kilobytes at most.
constexpr size_t kLongestAnswer = 16'000;

// What is asked of a profile; the rest of the file is not kept.
constexpr std::string_view kProfileKeys[] = {
    "aws_access_key_id", "aws_secret_access_key", "aws_session_token", "region", "credential_process",
    "role_arn",          "sso_session",           "sso_start_url"};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string_view stripped(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::optional<Credentials> from_variables(const char* key, const char* secret, const char* token) {
  Credentials credentials{variable(key), variable(secret), variable(token)};
  if (credentials.access_key.empty() && credentials.secret_key.empty()) return std::nullopt;
  if (credentials.access_key.empty() || credentials.secret_key.empty())
    throw ConfigError(fmt::format("the environment has one of {} and {}; both are needed", key, secret));
  return credentials;
}

std::map<std::string, std::string> profile_in(const char* name_variable, const char* default_name,
                                              const std::string& profile) {
  std::string path = variable(name_variable);
  if (path.empty()) {
    if (variable("HOME").empty()) return {};
    path = variable("HOME") + "/.aws/" + default_name;
  }
  std::string text;
  try {
    text = read_file(path);
  } catch (const NotFound&) {
    return {};
  }
  return parse_profile(text, path, profile);
}

std::string name_of_profile(const StoreOptions& options) {
  if (!options.profile.empty()) return options.profile;
  const char* given = std::getenv("AWS_PROFILE");
  return given && *given ? given : "default";
}

std::string value_of(const std::map<std::string, std::string>& profile, const std::string& key) {
  const auto found = profile.find(key);
  return found == profile.end() ? "" : found->second;
}

std::optional<Credentials> from_profile(const std::map<std::string, std::string>& profile,
                                        const std::string& name) {
  Credentials credentials{value_of(profile, "aws_access_key_id"), value_of(profile, "aws_secret_access_key"),
                          value_of(profile, "aws_session_token")};
  if (credentials.access_key.empty() && credentials.secret_key.empty()) return std::nullopt;
  if (credentials.access_key.empty() || credentials.secret_key.empty())
    throw ConfigError(fmt::format(
        "the profile '{}' has one of aws_access_key_id and aws_secret_access_key; both are needed", name));
  return credentials;
}

// Says why a profile has no keys, if somebody has meant it to have some.
void require_usable(const std::string& name, const std::map<std::string, std::string>& credentials,
                    const std::map<std::string, std::string>& config) {
  for (const auto* profile : {&credentials, &config})
    for (const char* way : {"credential_process", "role_arn", "sso_session", "sso_start_url"})
      if (profile->contains(way))
        throw ConfigError(
            fmt::format("the profile '{0}' gets its keys by {1}, which is not done here; `aws configure "
                        "export-credentials --profile '{0}' --format env` prints them as variables to set",
                        name, way));
  if (!variable("AWS_PROFILE").empty() && credentials.empty() && config.empty())
    throw ConfigError(fmt::format(
        "the environment says AWS_PROFILE='{}', and neither ~/.aws/credentials nor ~/.aws/config (or "
        "AWS_SHARED_CREDENTIALS_FILE, AWS_CONFIG_FILE) has keys of such a profile",
        name));
}

}  // namespace

std::map<std::string, std::string> parse_profile(std::string_view text, std::string_view source,
                                                 std::string_view profile) {
  text = without_byte_order_mark(text);
  std::map<std::string, std::string> values;
  bool has_name = false, is_asked_for = false;
  // Of the last value in this profile, if there is one: what stands further to the right belongs to it.
  size_t indent = std::string_view::npos;
  int number = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? "" : text.substr(end + 1);
    ++number;
    const std::string_view content = stripped(line);
    if (content.empty() || content.front() == '#' || content.front() == ';') continue;
    if (content.front() == '[') {
      if (content.back() != ']')
        throw DataError(fmt::format("{}:{}: a profile's name has no ']' at its end", source, number));
      std::string_view name = stripped(content.substr(1, content.size() - 2));
      if (name.starts_with("profile ") || name.starts_with("profile\t")) name = stripped(name.substr(8));
      has_name = true;
      is_asked_for = name == profile;
      indent = std::string_view::npos;
      continue;
    }
    const size_t column = line.find_first_not_of(" \t");
    if (column > indent) continue;
    indent = column;
    const size_t equals = content.find('=');
    if (equals == std::string_view::npos)
      throw DataError(fmt::format("{}:{}: expected NAME = VALUE", source, number));
    if (!has_name)
      throw DataError(fmt::format("{}:{}: there is no [profile] above this line", source, number));
    const std::string key = mox::internal::lower_case(stripped(content.substr(0, equals)));
    if (is_asked_for && std::ranges::find(kProfileKeys, key) != std::end(kProfileKeys))
      values[key] = stripped(content.substr(equals + 1));
  }
  return values;
}

std::optional<Credentials> local_credentials(const StoreOptions& options) {
  if (!options.profile.empty()) {
    for (const auto& [variable, file] :
         {std::pair("AWS_SHARED_CREDENTIALS_FILE", "credentials"), std::pair("AWS_CONFIG_FILE", "config")})
      if (auto found = from_profile(profile_in(variable, file, options.profile), options.profile))
        return found;
    throw ConfigError(
        fmt::format("there are no keys of the profile '{}' (--profile, file.profile) in the files "
                    "~/.aws/credentials and ~/.aws/config",
                    options.profile));
  }
  if (auto found = from_variables("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SECURITY_TOKEN")) return found;
  if (auto found = from_variables("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"))
    return found;
  const std::string name = name_of_profile(options);
  const auto credentials = profile_in("AWS_SHARED_CREDENTIALS_FILE", "credentials", name);
  if (auto found = from_profile(credentials, name)) return found;
  const auto config = profile_in("AWS_CONFIG_FILE", "config", name);
  if (auto found = from_profile(config, name)) return found;
  if (!options.instance_metadata) require_usable(name, credentials, config);
  return std::nullopt;
}

std::string region_of_profile(const StoreOptions& options) {
  return value_of(profile_in("AWS_CONFIG_FILE", "config", name_of_profile(options)), "region");
}

TemporaryCredentials parse_metadata_credentials(std::string_view json) {
  try {
    const nlohmann::json object =
        nlohmann::json::parse(json.size() <= kLongestAnswer ? json : std::string_view());
    TemporaryCredentials found{{object.at("AccessKeyId"), object.at("SecretAccessKey"), object.at("Token")},
                               object.at("Expiration")};
    if (!found.credentials.access_key.empty() && !found.credentials.secret_key.empty()) return found;
  } catch (const nlohmann::json::exception&) {
    // Its text may show a part of the secret.
  }
  throw DataError("the instance metadata service has answered with something that is no set of credentials");
}

}  // namespace mox::file::s3
