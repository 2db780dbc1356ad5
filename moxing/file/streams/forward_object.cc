#include "moxing/file/streams/forward_object.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "moxing/file/store_client.h"
#include "moxing/file/stored_object.h"
#include "moxing/file/streams/streamed_file.h"
#include "runtime/base/error.h"

namespace mox::file {
namespace {

// As much as one request of a StreamedFile brings.
constexpr int64_t kPiece = 1 << 20;

}  // namespace

struct ForwardObject::Place {
  int64_t size = 0, ahead = 0, at = 0;
  std::string whole;                         // of an object that comes in one request
  std::shared_ptr<const StreamedFile> file;  // of any other
  std::optional<ArrivingContent> check;
};

ForwardObject::ForwardObject(const std::string& url, int64_t ahead) : place_(std::make_unique<Place>()) {
  const auto client = store_client();
  const StoredObject object = find_object(*client, url, ahead > 0);
  place_->size = object.info.size;
  place_->ahead = ahead;
  if (place_->size <= std::min({ahead, kSingleRequest, stream_memory() / 2})) {
    place_->whole = client->get_same(object.name, object.info);
    return;
  }
  place_->file = StreamedFile::of(url, object.info.size, object.info.etag);
  if (ahead > 0) place_->check.emplace(client, object);
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
    if (place_->check) place_->check->add({reinterpret_cast<const char*>(piece.data()), piece.size()});
    place_->at += static_cast<int64_t>(piece.size());
    place_->file->forget_before(place_->at);
    out = out.subspan(piece.size());
  }
  announce();  // comes while the caller works
  if (left() == 0 && place_->check) place_->check->finish();
}

}  // namespace mox::file
