#include "moxing/config/remote_places.h"

#include "moxing/config/flags.h"
#include "moxing/config/state.h"
#include "moxing/file/file.h"
#include "moxing/file/jobs/local_places.h"
#include "moxing/file/store_client.h"

namespace mox::internal {

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

std::string local_places() { return file::places_directory(flag("file.local_directory")); }

void fetch_data() {
  const std::string url = flag("data_url");
  if (!file::is_remote(url) && !url.starts_with("file:")) return;
  bool has_cache = false;
  with_configured("fetch_data",
                  [&](ConfigStore* store) { has_cache = store->find("data.cache") != nullptr; });
  const bool streams = has_cache && flag("data.cache") != "directory";
  if (streams && file::is_remote(url)) return;
  const std::string local = local_data_url();
  if (local == url) return;
  with_configured("fetch_data", [&](ConfigStore* store) {
    store->at("data_url").local = OptionValue(local);
    // The copy is the cache, unless images are to be kept in another form elsewhere.
    const Setting* kept = store->find("data.cache_directory");
    if (has_cache && !streams && kept && kept->value() == OptionValue(std::string()))
      store->at("data.cache").local = OptionValue(std::string("none"));
  });
}

}  // namespace mox::internal

namespace mox {

std::string local_data_url() { return file::local_data(flag("data_url"), internal::local_places()); }

}  // namespace mox
