#include "moxing/config/remote_places.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "moxing/config/flags.h"
#include "moxing/config/state.h"
#include "moxing/file/file.h"
#include "moxing/file/jobs/local_places.h"
#include "runtime/base/error.h"
#include "runtime/job/job.h"

namespace mox::internal {

std::string log_dir_as_given() {
  const std::string log_dir = flag("log_dir");
  return log_dir.empty() ? flag("train_url") : log_dir;
}

std::string local_places() { return file::places_directory(flag("file.local_directory")); }

namespace {

// A run sees one content, which stays as long as the configuration that asked for it.
std::shared_ptr<file::DataInUse> data_in_use(const std::string& url) {
  const std::string places = local_places(), key = places + '\n' + url;
  std::shared_ptr<file::DataInUse> data;
  with_config([&](ConfigState* state) { data = state->data[key]; });
  if (data) return data;
  const JobActivity activity(kCopying);
  data = std::make_shared<file::DataInUse>(url, places);
  with_config([&](ConfigState* state) { state->data[key] = data; });
  return data;
}

// The data set may be exchanged in the store between the copies of two ranks. All ranks call this; `url`:
// what this one has copied, "" if it has its data elsewhere, as each may.
void require_same_data(const std::string& url, const std::string& content) {
  const std::vector<std::string> urls = job().allgather(url), contents = job().allgather(content);
  std::map<std::string, size_t> first;  // the rank that has it
  for (size_t rank = 0; rank < urls.size(); ++rank) {
    const size_t before = first.try_emplace(urls[rank], rank).first->second;
    if (contents[rank] != contents[before])
      throw IoError(fmt::format(
          "'{}' has changed while the ranks copied it: ranks {} and {} have other content. Start again when it "
          "is complete",
          urls[rank], before, rank));
  }
}

// Whether the program is given a path of this machine, and whether that takes the place of its data.cache.
struct Copied {
  bool is_wanted = false, is_cache = false;
};

Copied how_data_is_copied(const std::string& url) {
  const bool is_remote = file::is_remote(url);
  if (!is_remote && !url.starts_with("file:")) return {};
  bool has_cache = false;
  with_configured("fetch_data",
                  [&](ConfigStore* store) { has_cache = store->find("data.cache") != nullptr; });
  const bool streams = has_cache && flag("data.cache") != "directory";
  return {.is_wanted = !streams || !is_remote, .is_cache = has_cache && !streams};
}

}  // namespace

void fetch_data() {
  const std::string url = flag("data_url");
  const Copied copied = how_data_is_copied(url);
  const bool is_fetched = copied.is_wanted && file::is_remote(url);
  std::shared_ptr<file::DataInUse> data;
  if (copied.is_wanted) data = data_in_use(url);
  require_same_data(is_fetched ? url : "", is_fetched ? data->content() : "");
  if (!data || data->path() == url) return;
  with_configured("fetch_data", [&](ConfigStore* store) {
    store->at("data_url").local = OptionValue(data->path());
    // The copy is the cache, unless images are to be kept in another form elsewhere.
    const Setting* kept = store->find("data.cache_directory");
    if (copied.is_cache && kept && kept->value() == OptionValue(std::string()))
      store->at("data.cache").local = OptionValue(std::string("none"));
  });
}

}  // namespace mox::internal

namespace mox {

namespace {

// What `copy` makes of the URL that `option` names, once: a run that begins asks for its
// places several times.
std::string copied_once(const std::string& option, const std::string& url,
                        std::string (*copy)(const std::string&, const std::string&)) {
  const std::string places = internal::local_places();
  if (!file::is_remote(url)) return copy(url, places);
  const std::string key = option + '\n' + places + '\n' + url;
  std::string place;
  internal::with_config([&](internal::ConfigState* state) { place = state->copies[key]; });
  if (!place.empty()) return place;
  const internal::JobActivity activity(internal::kCopying);
  place = copy(url, places);
  internal::with_config([&](internal::ConfigState* state) { state->copies[key] = place; });
  return place;
}

}  // namespace

std::string log_dir_of_run() {
  const std::string log_dir = internal::log_dir_as_given();
  if (log_dir.empty()) return "";
  if (internal::job().rank() != 0) return file::place_of_run(log_dir, internal::local_places());
  return copied_once("log_dir", log_dir, file::local_run);
}

std::string checkpoint_path_of_run() {
  std::string checkpoint = flag("checkpoint_path");
  if (checkpoint.empty() || internal::job().rank() != 0) return checkpoint;
  return copied_once("checkpoint_path", checkpoint, file::local_checkpoint);
}

std::string local_data_url() { return internal::data_in_use(flag("data_url"))->path(); }

}  // namespace mox
