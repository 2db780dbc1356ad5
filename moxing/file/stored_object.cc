#include "moxing/file/stored_object.h"

#include <fmt/format.h>

#include "moxing/file/file.h"
#include "moxing/file/internal/copy_task.h"
#include "moxing/file/internal/object_name.h"
#include "moxing/file/internal/part_sizes.h"
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

ArrivingContent::ArrivingContent(s3::Client& client, const StoredObject& object)
    : name_(object.name.shown()),
      check_(std::make_unique<internal::ContentCheck>(
          object.info, internal::parts_behind_etag(client, object.name, object.info, {}))) {}

ArrivingContent::~ArrivingContent() = default;

void ArrivingContent::add(std::string_view bytes) { check_->update(bytes); }

void ArrivingContent::finish() {
  if (!check_->finish())
    throw DataError(
        fmt::format("'{}' has arrived with another content than its {} says", name_, check_->promise()));
}

}  // namespace mox::file
