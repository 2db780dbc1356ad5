#include "moxing/formats/internal/gzip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

#include "runtime/base/error.h"

namespace mox::data {
namespace {

constexpr int kGzipOnly = 16 + MAX_WBITS;

}  // namespace

struct GzipReader::State {
  std::span<const std::byte> content;
  std::string path;
  size_t taken = 0;  // compressed bytes that zlib has consumed
  bool ended = false;
  z_stream stream{};
};

bool is_gzip(std::span<const std::byte> content) {
  return content.size() >= 2 && content[0] == std::byte{0x1f} && content[1] == std::byte{0x8b};
}

size_t most_gzip_output(size_t compressed_bytes) { return compressed_bytes * 1032; }

GzipReader::GzipReader(std::span<const std::byte> content, std::string path)
    : state_(std::make_unique<State>()) {
  state_->content = content;
  state_->path = std::move(path);
  MOX_ASSERT(inflateInit2(&state_->stream, kGzipOnly) == Z_OK, "zlib starts");
}

GzipReader::~GzipReader() { inflateEnd(&state_->stream); }

size_t GzipReader::read(std::span<std::byte> out) {
  State& state = *state_;
  const auto fail = [&](std::string_view what) {
    throw DataError(
        fmt::format("'{}', compressed offset {}: {}; fetch the file again", state.path, state.taken, what));
  };
  constexpr size_t kPiece = size_t{1} << 30;  // zlib counts in 32 bits
  size_t filled = 0;
  while (filled < out.size() && !state.ended) {
    const size_t input = std::min(kPiece, state.content.size() - state.taken);
    const size_t room = std::min(kPiece, out.size() - filled);
    state.stream.next_in =
        reinterpret_cast<Bytef*>(const_cast<std::byte*>(state.content.data() + state.taken));
    state.stream.avail_in = static_cast<uInt>(input);
    state.stream.next_out = reinterpret_cast<Bytef*>(out.data() + filled);
    state.stream.avail_out = static_cast<uInt>(room);
    const int status = inflate(&state.stream, Z_NO_FLUSH);
    state.taken += input - state.stream.avail_in;
    filled += room - state.stream.avail_out;
    if (status == Z_STREAM_END) {
      if (state.taken == state.content.size()) {
        state.ended = true;
      } else {  // a gzip file may be several members in a row
        if (!is_gzip(state.content.subspan(state.taken)))
          fail(fmt::format("{} bytes that are not gzip follow the compressed data",
                           state.content.size() - state.taken));
        MOX_ASSERT(inflateReset2(&state.stream, kGzipOnly) == Z_OK, "zlib starts again");
      }
    } else if (status == Z_BUF_ERROR ||
               (status == Z_OK && state.taken == state.content.size() && filled < out.size())) {
      fail("the compressed data is cut off");
    } else if (status != Z_OK) {
      fail(fmt::format("the compressed data is damaged ({})",
                       state.stream.msg ? state.stream.msg : "unknown reason"));
    }
  }
  return filled;
}

}  // namespace mox::data
