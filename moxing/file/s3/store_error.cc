#include "moxing/file/s3/store_error.h"

#include <fmt/format.h>

#include <algorithm>

namespace mox::file::s3 {
namespace {

StoreError changed(const std::string& shown, const std::string& how) {
  return StoreError(
      fmt::format("'{}' has changed while it was read: {}. What was read before is of the former content: "
                  "begin again (a training: from its last checkpoint), and replace objects only while "
                  "nothing reads them",
                  shown, how),
      kChangedStatus, "PreconditionFailed");
}

}  // namespace

bool is_away(const StoreError& error) {
  constexpr int kOfAStoreThatIsUnwell[] = {0, 429, 500, 502, 503, 504};
  return error.code() != kTooLongCode && std::ranges::count(kOfAStoreThatIsUnwell, error.status()) > 0;
}

StoreError changed_object(const std::string& shown, const std::string& before, const std::string& now) {
  return changed(shown, now.empty() ? fmt::format("its ETag was {} and the store gives none now", before)
                                    : fmt::format("its ETag was {} and is {} now", before, now));
}

StoreError changed_size(const std::string& shown, int64_t before, int64_t now) {
  return changed(shown, fmt::format("it had {} bytes and has {} now", before, now));
}

}  // namespace mox::file::s3
