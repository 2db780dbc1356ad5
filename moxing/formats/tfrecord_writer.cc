#include <utility>

#include "moxing/formats/tfrecord.h"
#include "runtime/base/error.h"
#include "runtime/base/new_file.h"

namespace mox::data {
namespace {

constexpr size_t kBufferBytes = 1 << 20;

}  // namespace

TfRecordWriter::TfRecordWriter(std::string path) : file_(std::make_unique<NewFile>(std::move(path))) {
  buffer_.reserve(kBufferBytes);
}

TfRecordWriter::~TfRecordWriter() = default;

void TfRecordWriter::flush() {
  file_->write(buffer_);
  buffer_.clear();
}

void TfRecordWriter::append(std::span<const std::byte> bytes) {
  if (buffer_.size() + bytes.size() > kBufferBytes) flush();
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  bytes_ += bytes.size();
}

void TfRecordWriter::write(std::span<const std::byte> record) {
  MOX_ASSERT(file_, "a TfRecordWriter is written to before it is closed");
  const uint64_t length = record.size();
  const auto header = std::as_bytes(std::span(&length, 1));
  const uint32_t header_checksum = masked_crc32c(header), checksum = masked_crc32c(record);
  append(header);
  append(std::as_bytes(std::span(&header_checksum, 1)));
  append(record);
  append(std::as_bytes(std::span(&checksum, 1)));
  ++records_;
}

void TfRecordWriter::close() {
  MOX_ASSERT(file_, "a TfRecordWriter is closed once");
  flush();
  file_->publish();
  file_.reset();
}

}  // namespace mox::data
