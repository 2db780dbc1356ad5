// Options of object stores: where they are and how to speak with them. No secret is an option.
#include "moxing/config/internal/option_tables.h"

namespace mox::internal {

std::vector<Option> options_of_stores() {
  return {
      {.name = "file.endpoint",
       .type = OptionType::kString,
       .default_value = "",
       .group = "Object stores",
       .help = "Address of the object store, http[s]://HOST[:PORT]. Empty: as S3_ENDPOINT or "
               "AWS_ENDPOINT_URL say, else AWS (obs:// needs one)."},
      {.name = "file.region",
       .type = OptionType::kString,
       .default_value = "",
       .group = "Object stores",
       .help = "Region of the store. Empty: as S3_REGION, AWS_REGION or the profile say, else us-east-1, and "
               "where the store says that a bucket is elsewhere, there."},
      {.name = "file.profile",
       .type = OptionType::kString,
       .default_value = "",
       .group = "Object stores",
       .help = "Profile of ~/.aws/credentials and ~/.aws/config. Empty: as AWS_PROFILE says, else default."},
      {.name = "file.addressing",
       .type = OptionType::kString,
       .default_value = "auto",
       .group = "Object stores",
       .help =
           "How buckets are addressed: virtual (https://BUCKET.HOST), path (https://HOST/BUCKET), or auto: "
           "virtual with AWS and OBS.",
       .allowed = {"auto", "virtual", "path"}},
      {.name = "file.verify_ssl",
       .type = OptionType::kBool,
       .default_value = true,
       .group = "Object stores",
       .help = "Verify the certificate of the store. S3_VERIFY_SSL=0 has it not verified, too."},
      {.name = "file.ca_file",
       .type = OptionType::kString,
       .default_value = "",
       .group = "Object stores",
       .help = "Certificates to trust. Empty: as AWS_CA_BUNDLE says, else the system's."},
      {.name = "file.append",
       .type = OptionType::kString,
       .default_value = "auto",
       .group = "Object stores",
       .help = "How objects are appended to: native (OBS's call), rewrite (the object is written anew), or "
               "auto: native with obs:// names and OBS's hosts.",
       .allowed = {"auto", "native", "rewrite"}},
      {.name = "file.instance_metadata",
       .type = OptionType::kBool,
       .default_value = false,
       .group = "Object stores",
       .help = "Ask the cloud machine's metadata service for credentials if there are no others."},
      {.name = "file.connections",
       .type = OptionType::kInteger,
       .default_value = int64_t{64},
       .group = "Object stores",
       .help = "Connections of this process at most.",
       .minimum = 1,
       .maximum = 1024},
      {.name = "file.stall_seconds",
       .type = OptionType::kNumber,
       .default_value = 30.0,
       .group = "Object stores",
       .help = "A request on which nothing moves, or hardly anything, for so long is given up, and repeated.",
       .minimum = 0.1},
      {.name = "file.deadline_seconds",
       .type = OptionType::kNumber,
       .default_value = 300.0,
       .group = "Object stores",
       .help = "An operation that was repeated for so long in vain is an error.",
       .minimum = 0},
      {.name = "file.attempts",
       .type = OptionType::kInteger,
       .default_value = int64_t{10},
       .group = "Object stores",
       .help = "Attempts of a request.",
       .minimum = 1,
       .maximum = 1000},
      {.name = "file.local_directory",
       .type = OptionType::kString,
       .default_value = "",
       .group = "Object stores",
       .help =
           "Where this machine keeps what lies in object stores: data sets (data_url), checkpoints, and runs "
           "on their way there (train_url). Empty: ~/.cache/moxing."},
  };
}

}  // namespace mox::internal
