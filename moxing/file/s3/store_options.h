// Where the object store is and how to speak with it. docs/files.md explains each for users.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "moxing/file/s3/signature.h"

namespace mox::file::s3 {

struct StoreOptions {
  std::string endpoint = {};  // "https://host:port"; empty: AWS
  std::string region = {};    // empty: us-east-1, or what the store says
  std::string profile = {};   // of ~/.aws; empty: AWS_PROFILE, else "default"
  bool verify_tls = true;
  std::string ca_file = {};  // certificates to trust instead of the system's
  enum class Addressing {
    kAuto,     // virtual-hosted where the bucket's name and the endpoint allow it: with AWS and OBS
    kVirtual,  // https://bucket.host/key
    kPath,     // https://host/bucket/key
  } addressing = Addressing::kAuto;
  enum class Append {
    kAuto,  // OBS's call for obs:// names and OBS's hosts
    kNative,
    kRewrite,
  } append = Append::kAuto;
  bool instance_metadata = false;  // ask the cloud machine's service for credentials if there are no others
  int connections = 64;            // at most, to all hosts together
  double connect_timeout_s = 10;
  // A request on which nothing moves for so long, or in an answer less than 1 KiB/s, is given
  // up, and repeated.
  double stall_s = 30;
  double deadline_s = 300;  // an operation that has been repeated for so long in vain is an error
  int attempts = 10;        // of a request
  double first_delay_s = 0.1, longest_delay_s = 20;  // between attempts: a random part of a time that doubles
  int64_t largest_copy = int64_t{5} << 30;  // by one request within the store; what is larger goes in parts
};

// What the environment says; names that it does not mention keep their values. S3_* and ACCESS_KEY_ID are
// MoXing's names, AWS_* those of Amazon's tools; MoXing's win. ConfigError for a value that cannot be used,
// which is never shown if it may be secret.
StoreOptions options_from_environment(StoreOptions options = {});

}  // namespace mox::file::s3
