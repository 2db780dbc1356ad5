#include "moxing/file/streams/streamed_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "moxing/file/store_client.h"
#include "moxing/file/stored_object.h"
#include "moxing/file/streams/internal/stream_buffer.h"
#include "runtime/base/error.h"

namespace mox::file {
namespace {

using internal::StreamBuffer;

// Records of photographs are about as large: less, and each takes more pieces; more, and what lies beside a
// record that is wanted travels with it.
constexpr int64_t kBlock = 128 << 10;
// Where reads go forward: in one request, and in all.
constexpr int64_t kBlocksOfRequest = 8, kBlocksAhead = 64;
// So many reads one after another go forward.
constexpr int kForward = 3;

}  // namespace

struct StreamedFile::Place {
  std::string url;
  int64_t size = 0;
  std::string version;
  bool fetches_ahead = false;  // where reads go forward
  std::atomic<int64_t> last_block{-1};
  std::atomic<int> forward{0};
  std::atomic<int64_t> announced{0};  // blocks before this one, of reads that go forward
  std::atomic<int64_t> forgotten{0};  // blocks before this one

  std::string key(int64_t block) const { return fmt::format("{} {} {}", version, block, url); }
  StreamBuffer::Request request(int64_t first, int64_t end) const {
    StreamBuffer::Request request;
    for (int64_t block = first; block < end; ++block) request.keys.push_back(key(block));
    const int64_t offset = first * kBlock, length = std::min(end * kBlock, size) - offset;
    request.bytes = length;
    request.fetch = [url = url, version = version, offset, length,
                     count = end - first](std::stop_token stop) {
      std::string bytes = store_client()->get_range(object_of(url), offset, length, version, std::move(stop));
      std::vector<std::string> blocks;
      if (count == 1)
        blocks.push_back(std::move(bytes));
      else
        for (int64_t i = 0; i < count; ++i) blocks.push_back(bytes.substr(i * kBlock, kBlock));
      return blocks;
    };
    return request;
  }
};

StreamedFile::StreamedFile(std::unique_ptr<Place> place) : place_(std::move(place)) {}
StreamedFile::~StreamedFile() = default;

std::shared_ptr<const StreamedFile> StreamedFile::open(const std::string& url) {
  const auto found = store_client()->head(object_of(url));
  if (!found) throw NotFound(fmt::format("no object '{}'", url));
  auto file = of(url, found->size, found->etag);
  file->place_->fetches_ahead = true;
  return file;
}

std::shared_ptr<const StreamedFile> StreamedFile::of(const std::string& url, int64_t size,
                                                     std::string version) {
  auto place = std::make_unique<Place>();
  place->url = url;
  place->size = size;
  place->version = std::move(version);
  return std::shared_ptr<const StreamedFile>(new StreamedFile(std::move(place)));
}

int64_t StreamedFile::size() const { return place_->size; }
const std::string& StreamedFile::version() const { return place_->version; }

void StreamedFile::announce(int64_t first, int64_t end) const {
  StreamBuffer& buffer = StreamBuffer::of_process();
  // One request for each run of blocks that are not there.
  for (int64_t block = first; block < end;) {
    if (buffer.has(place_->key(block))) {
      ++block;
      continue;
    }
    int64_t until = block + 1;
    while (until < end && until - block < kBlocksOfRequest && !buffer.has(place_->key(until))) ++until;
    if (!buffer.announce(place_->request(block, until))) return;
    block = until;
  }
}

void StreamedFile::will_read(int64_t offset, int64_t length) const {
  if (length > 0) announce(offset / kBlock, (offset + length - 1) / kBlock + 1);
}

void StreamedFile::forget_before(int64_t offset) const {
  const int64_t end = offset == place_->size ? (offset + kBlock - 1) / kBlock : offset / kBlock;
  for (int64_t block = place_->forgotten.exchange(end); block < end; ++block)
    StreamBuffer::of_process().drop(place_->key(block));
}

void StreamedFile::read(int64_t offset, std::span<std::byte> out) const {
  if (out.empty()) return;
  const auto end = offset + static_cast<int64_t>(out.size());
  MOX_ASSERT(offset >= 0 && end <= place_->size, "what is read lies in the object");
  const int64_t first = offset / kBlock, last = (end - 1) / kBlock;
  const int64_t before = place_->last_block.exchange(last);
  if (first == before || first == before + 1)
    place_->forward.fetch_add(last > before ? 1 : 0);  // a read may begin in the block that it leaves
  else
    place_->forward.store(0), place_->announced.store(0);
  if (last > first) announce(first, last + 1);
  if (place_->fetches_ahead && place_->forward.load() >= kForward) {
    // In whole requests, and each once.
    const int64_t blocks = (place_->size - 1) / kBlock + 1;
    // Where more is ahead than half of the memory, what comes drives out what waits to be read.
    const int64_t ahead = std::min(kBlocksAhead, stream_memory() / 2 / kBlock);
    const int64_t wanted = std::min(blocks, last + 1 + ahead);
    const int64_t from = std::max(place_->announced.load(), last + 1);
    if (wanted - from >= kBlocksOfRequest || (wanted == blocks && from < blocks)) {
      place_->announced.store(wanted);
      announce(from, wanted);
    }
  }
  for (int64_t block = first; block <= last; ++block) {
    const StreamBuffer::Bytes bytes = StreamBuffer::of_process().take(
        place_->key(block), [&] { return place_->request(block, block + 1); });
    const int64_t skipped = std::max<int64_t>(0, offset - block * kBlock);
    const int64_t count = std::min(end, (block + 1) * kBlock) - block * kBlock - skipped;
    std::memcpy(out.data() + (block * kBlock + skipped - offset), bytes->data() + skipped, count);
  }
}

void set_stream_memory(int64_t bytes) { StreamBuffer::of_process().set_limit(bytes); }

int64_t stream_memory() { return StreamBuffer::of_process().limit(); }

int64_t take_stream_memory_peak() { return StreamBuffer::of_process().take_peak(); }

}  // namespace mox::file
