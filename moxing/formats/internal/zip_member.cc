#include "moxing/formats/internal/zip_member.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace mox::data::internal {
namespace {

// What the checksum takes while it still lies in the cache.
constexpr size_t kPieceBytes = size_t{1} << 20, kPackedBytes = size_t{64} << 10;

}  // namespace

struct ZipMember::Inflation {
  Inflation() { MOX_ASSERT(inflateInit2(&stream, -MAX_WBITS) == Z_OK, "zlib starts"); }
  ~Inflation() { inflateEnd(&stream); }
  Inflation(const Inflation&) = delete;
  Inflation& operator=(const Inflation&) = delete;

  z_stream stream{};
  bool ended = false;
  std::vector<std::byte> packed;
};

ZipMember::ZipMember(const ByteSource& archive, const std::string& path, const Place& place)
    : archive_(archive),
      path_(path),
      place_(place),
      inflation_(place.deflated ? std::make_unique<Inflation>() : nullptr) {}
ZipMember::~ZipMember() = default;
ZipMember::ZipMember(ZipMember&&) noexcept = default;

void ZipMember::fail(const std::string& what) const {
  throw DataError(fmt::format("'{}', offset {}: {}", path_, place_.begin, what));
}

void ZipMember::read(std::span<std::byte> out) {
  MOX_ASSERT(out.size() <= left(), "what is read is there");
  while (!out.empty()) {
    const auto piece = out.first(std::min(out.size(), kPieceBytes));
    if (inflation_) {
      inflate_into(piece);
    } else {
      archive_.read_at(place_.begin + taken_, piece);
      taken_ += piece.size();
    }
    checksum_ = crc32(piece, checksum_);
    given_ += piece.size();
    out = out.subspan(piece.size());
  }
}

// As far as `out` and the packed bytes reach. What is left of it begins *out.
void ZipMember::inflate_some(std::span<std::byte>* out) {
  z_stream& stream = inflation_->stream;
  if (stream.avail_in == 0 && taken_ < place_.packed) {
    std::vector<std::byte>& packed = inflation_->packed;
    packed.resize(std::min<uint64_t>(kPackedBytes, place_.packed - taken_));
    archive_.read_at(place_.begin + taken_, packed);
    taken_ += packed.size();
    stream.next_in = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_in = static_cast<uInt>(packed.size());
  }
  stream.next_out = reinterpret_cast<Bytef*>(out->data());
  stream.avail_out = static_cast<uInt>(out->size());
  const int status = inflate(&stream, Z_NO_FLUSH);
  *out = out->last(stream.avail_out);
  inflation_->ended = status == Z_STREAM_END;
  const bool is_all_taken = stream.avail_in == 0 && taken_ == place_.packed;
  if ((status != Z_OK && status != Z_STREAM_END) || (status == Z_OK && is_all_taken && !out->empty()))
    fail("the member cannot be unpacked");
}

void ZipMember::inflate_into(std::span<std::byte> out) {
  while (!out.empty()) {
    if (inflation_->ended) fail("the member cannot be unpacked");
    inflate_some(&out);
  }
}

void ZipMember::require_whole() {
  // The end may need more of what is packed, but no byte may come of it.
  std::byte none{};
  for (std::span<std::byte> more(&none, 1); inflation_ && !inflation_->ended;) {
    inflate_some(&more);
    if (more.empty()) fail("the member cannot be unpacked");
  }
  if (checksum_ != place_.checksum)
    fail(fmt::format("the member is damaged: its checksum should be {:#010x}, it is {:#010x}",
                     place_.checksum, checksum_));
}

}  // namespace mox::data::internal
