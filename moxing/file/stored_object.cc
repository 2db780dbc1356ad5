#include "moxing/file/stored_object.h"

#include <fmt/format.h>

#include <utility>

#include "moxing/file/file.h"
#include "moxing/file/internal/object_name.h"
#include "moxing/file/internal/part_sizes.h"
#include "moxing/file/internal/parts/parts_behind_etag.h"
#include "moxing/file/internal/store.h"
#include "moxing/file/internal/url.h"
#include "runtime/base/error.h"

namespace mox::file {

s3::ObjectName object_of(const std::string& url) { return internal::object_name(internal::parse_url(url)); }

StoredObject find_object(s3::Client& client, const std::string& url, bool with_checksum) {
  const internal::Url place = internal::parse_url(url);
  const s3::ObjectName object = internal::object_name(place);
  if (!place.path.empty())
    if (const auto found = with_checksum ? client.head_with_checksum(object) : client.head(object))
      return {object, *found};
  const std::string name = internal::to_string(place);
  if (is_directory(name))
    throw FailedPrecondition(fmt::format("cannot read '{}': it names a directory", name));
  throw NotFound(fmt::format("no object '{}'{}", name, internal::absent_bucket(place)));
}

ArrivingContent::ArrivingContent(std::shared_ptr<s3::Client> client, StoredObject object)
    : client_(std::move(client)), object_(std::move(object)) {
  // What has come is gone, and cannot be compared again if the sizes of several parts were guessed wrong.
  const bool would_guess = internal::parts_in_etag(object_.info.etag) > 1;
  if (!would_guess || !object_.info.checksum)
    part_size_ = internal::parts_behind_etag(*client_, object_.name, object_.info, {});
  check_ = std::make_unique<internal::ContentCheck>(object_.info, part_size_);
}

ArrivingContent::~ArrivingContent() = default;

void ArrivingContent::add(std::string_view bytes) { check_->update(bytes); }

void ArrivingContent::finish() {
  if (check_->finish()) return;
  if (part_size_ && internal::other_parts_behind_etag(*client_, object_.name, object_.info, *part_size_, {}))
    return;  // the guess was wrong, and nothing else says what the content is
  throw DataError(fmt::format("'{}' has arrived with another content than its {} says", object_.name.shown(),
                              check_->promise()));
}

}  // namespace mox::file
