#include "moxing/cli/internal/checkpoint_here.h"

#include "moxing/file/file.h"
#include "moxing/file/jobs/local_places.h"

namespace mox::cli {

std::string checkpoint_here(const std::string& url) {
  return file::local_checkpoint(url, file::places_directory(""));
}

std::string checkpoints_here(const std::string& url) {
  if (file::is_remote(url) && file::exists(url + "/state.json")) return checkpoint_here(url);
  return file::is_remote(url) ? file::local_data(url, file::places_directory("")) : file::local_path(url);
}

}  // namespace mox::cli
