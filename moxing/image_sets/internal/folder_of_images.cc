#include "moxing/image_sets/internal/folder_of_images.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <string_view>
#include <unordered_set>

#include "moxing/image_sets/internal/directory.h"
#include "runtime/base/crc32c.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace mox::data::internal {

uint32_t checksum(const std::string& text, uint32_t previous) {
  return crc32c(std::as_bytes(std::span(text.data(), text.size() + 1)), previous);
}

void warn_of_other_files(const std::string& directory, const std::vector<std::string>& others) {
  if (!others.empty())
    log_warning(fmt::format("'{}': {} entries are not called .jpg, .jpeg or .png and are left out: {}",
                            directory, others.size(), some_of(others)));
}

std::vector<std::string> only_in(const std::vector<std::string>& some,
                                 const std::vector<std::string>& others) {
  const std::unordered_set<std::string_view> known(others.begin(), others.end());
  std::vector<std::string> result;
  std::copy_if(some.begin(), some.end(), std::back_inserter(result),
               [&](const std::string& name) { return !known.contains(name); });
  return result;
}

void require_known(const std::string& directory, const std::vector<std::string>& given,
                   const std::vector<std::string>& of_run) {
  const auto unknown = only_in(given, of_run);
  if (!unknown.empty())
    throw DataError(fmt::format("'{}' has classes that the run does not have: {}; its {} classes are {}",
                                directory, some_of(unknown), of_run.size(), some_of(of_run)));
}

void warn_of_lacking(const std::string& directory, const std::vector<std::string>& lacking, size_t classes) {
  if (!lacking.empty())
    log_warning(fmt::format("'{}' has no images of {} of the {} classes: {}", directory, lacking.size(),
                            classes, some_of(lacking)));
}

std::string FilesOfImages::identity() const {
  return fmt::format("{}, files {:08x}", describe(), files_->checksum());
}

}  // namespace mox::data::internal
