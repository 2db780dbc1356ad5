// Who asks: the keys with which requests are signed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "moxing/file/s3/signature.h"
#include "moxing/file/s3/store_options.h"

namespace mox::file::s3 {

// A profile of a file such as ~/.aws/credentials or ~/.aws/config: "[name]" or "[profile name]", then "key =
// value", keys in any case; "#" and ";" begin comments, lines that are further indented than the value above
// them belong to it and are left out. Only the keys that are asked for here are kept. `source` is for
// messages. Throws DataError that names the line, of any profile, and never shows it.
std::map<std::string, std::string> parse_profile(std::string_view text, std::string_view source,
                                                 std::string_view profile);

// Those of options.profile if it names one (ConfigError if it has none). Else the first of these that has
// any: ACCESS_KEY_ID and SECRET_ACCESS_KEY (SECURITY_TOKEN); AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY
// (AWS_SESSION_TOKEN); the profile AWS_PROFILE or "default" in AWS_SHARED_CREDENTIALS_FILE or
// ~/.aws/credentials, then AWS_CONFIG_FILE or ~/.aws/config. A key without a secret is a ConfigError, and so
// is a profile that gets its keys in another way, or an AWS_PROFILE that is not there.
// Nothing: there are none.
std::optional<Credentials> local_credentials(const StoreOptions& options);

// The region of the profile, if it says one.
std::string region_of_profile(const StoreOptions& options);

// What the instance metadata service (IMDSv2) answered with: JSON. DataError without showing it.
struct TemporaryCredentials {
  Credentials credentials;
  std::string expiration;  // "2026-01-01T00:00:00Z"
};
TemporaryCredentials parse_metadata_credentials(std::string_view json);

}  // namespace mox::file::s3
