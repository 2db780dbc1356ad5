#include "moxing/config/held_options.h"

#include <algorithm>
#include <optional>
#include <string>

#include "moxing/config/flags.h"
#include "moxing/config/options.h"
#include "moxing/file/store_client.h"
#include "runtime/job/job.h"

namespace mox::internal {
namespace {

constexpr std::string_view kOfStores = "file.", kReadLate = "file.local_directory", kLogLevel = "log_level";

}  // namespace

LogLevel level_named(std::string_view log_level) {
  if (log_level == "debug") return LogLevel::kDebug;
  if (log_level == "warning") return LogLevel::kWarning;
  return log_level == "error" ? LogLevel::kError : LogLevel::kInfo;
}

bool is_held(std::string_view option) {
  return option == kLogLevel || (option.starts_with(kOfStores) && option != kReadLate);
}

void pass_on(std::string_view option) {
  if (option == kLogLevel)
    // The framework's, also where a program has a flag of its own by that name. The other ranks stay as quiet
    // as joining the job has made them.
    set_log_level(std::max(level_named(resolve<std::string>(kLogLevel, std::nullopt)),
                           job().rank() == 0 ? LogLevel::kDebug : LogLevel::kWarning));
  else if (is_held(option))
    use_store_options();
}

void use_store_options() {
  using file::s3::StoreOptions;
  StoreOptions options;
  options.endpoint = flag("file.endpoint");
  options.region = flag("file.region");
  options.profile = flag("file.profile");
  const std::string addressing = flag("file.addressing"), append = flag("file.append");
  if (addressing == "virtual") options.addressing = StoreOptions::Addressing::kVirtual;
  if (addressing == "path") options.addressing = StoreOptions::Addressing::kPath;
  if (append == "native") options.append = StoreOptions::Append::kNative;
  if (append == "rewrite") options.append = StoreOptions::Append::kRewrite;
  options.verify_tls = get_flag<bool>("file.verify_ssl");
  options.ca_file = flag("file.ca_file");
  options.instance_metadata = get_flag<bool>("file.instance_metadata");
  options.connections = get_flag<int>("file.connections");
  options.stall_s = get_flag<double>("file.stall_seconds");
  options.deadline_s = get_flag<double>("file.deadline_seconds");
  options.attempts = get_flag<int>("file.attempts");
  file::set_store_options(options);
}

}  // namespace mox::internal
