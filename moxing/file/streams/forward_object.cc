#include "moxing/file/streams/forward_object.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include "moxing/file/file.h"
#include "moxing/file/internal/copy_task.h"
#include "moxing/file/internal/object_name.h"
#include "moxing/file/internal/part_sizes.h"
#include "moxing/file/internal/store.h"
#include "moxing/file/internal/url.h"
#include "moxing/file/store_client.h"
#include "moxing/file/streams/streamed_file.h"
#include "runtime/base/error.h"

namespace mox::file {
namespace {

// As much as one request of a StreamedFile brings.
constexpr int64_t kPiece = 1 << 20;

s3::ObjectInfo looked_at(s3::Client& client, const internal::Url& place, bool with_checksum) {
  const s3::ObjectName object = internal::object_name(place);
  if (!place.path.empty())
    if (const auto found = with_checksum ? client.head_with_checksum(object) : client.head(object))
      return *found;
  const std::string name = internal::to_string(place);
  if (is_directory(name))
    throw FailedPrecondition(fmt::format("cannot read '{}': it names a directory", name));
  throw NotFound(fmt::format("no object '{}'{}", name, internal::absent_bucket(place)));
}

}  // namespace

struct ForwardObject::Place {
  std::string name;
  int64_t size = 0, ahead = 0, at = 0;
  std::string whole;                         // of an object that comes in one request
  std::shared_ptr<const StreamedFile> file;  // of any other
  std::optional<internal::ContentCheck> check;
};

ForwardObject::ForwardObject(const std::string& url, int64_t ahead) : place_(std::make_unique<Place>()) {
  const auto client = store_client();
  const internal::Url place = internal::parse_url(url);
  const s3::ObjectName object = internal::object_name(place);
  const s3::ObjectInfo info = looked_at(*client, place, ahead > 0);
  place_->name = object.shown();
  place_->size = info.size;
  place_->ahead = ahead;
  if (info.size <= std::min({ahead, internal::kSingleRequest, stream_memory() / 2})) {
    place_->whole = client->get_same(object, info);
    return;
  }
  place_->file = StreamedFile::of(url, info.size, info.etag);
  if (ahead > 0) place_->check.emplace(info, internal::parts_behind_etag(*client, object, info, {}));
}

ForwardObject::~ForwardObject() = default;

int64_t ForwardObject::left() const { return place_->size - place_->at; }

// In whole requests.
void ForwardObject::announce() const {
  const int64_t most = std::min(place_->ahead, stream_memory() / 2);
  int64_t end = place_->at + most;
  end = end < place_->size ? end / kPiece * kPiece : place_->size;
  if (most > 0) place_->file->will_read(place_->at, end - place_->at);
}

void ForwardObject::read(std::span<std::byte> out) {
  MOX_ASSERT(static_cast<int64_t>(out.size()) <= left(), "what is read is there");
  if (out.empty()) return;
  if (!place_->file) {
    std::memcpy(out.data(), place_->whole.data() + place_->at, out.size());
    place_->at += static_cast<int64_t>(out.size());
    return;
  }
  // In pieces, so that what follows is asked for as soon as there is room for it.
  while (!out.empty()) {
    const auto piece = out.first(std::min<size_t>(out.size(), kPiece));
    announce();
    place_->file->read(place_->at, piece);
    if (place_->check) place_->check->update({reinterpret_cast<const char*>(piece.data()), piece.size()});
    place_->at += static_cast<int64_t>(piece.size());
    place_->file->forget_before(place_->at);
    out = out.subspan(piece.size());
  }
  announce();  // comes while the caller works
  if (left() == 0 && place_->check && !place_->check->finish())
    throw DataError(fmt::format("'{}' has arrived with another content than its {} says", place_->name,
                                place_->check->promise()));
}

}  // namespace mox::file
