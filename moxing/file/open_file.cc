#include "moxing/file/open_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <utility>

#include "moxing/file/internal/open_bytes.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/resource_limits.h"

namespace mox::file {
namespace {

constexpr int64_t kReadAtOnce = 64 << 10;
constexpr int64_t kAlwaysRead = 64 << 20;  // without asking how much memory there is

internal::OpenMode parse_mode(std::string_view text) {
  std::string plain;
  for (const char c : text)
    if (c != 'b') plain += c;
  internal::OpenMode mode;
  const bool both = plain.ends_with('+');
  const std::string_view kind = std::string_view(plain).substr(0, plain.size() - both);
  const bool known =
      (kind == "r" || kind == "w" || kind == "a") && text.size() - plain.size() <= 1 && text.front() != 'b';
  if (!known)
    throw InvalidArgument(fmt::format(
        "there is no mode '{}' of a file; expected r, w, a, r+, w+ or a+, with or without b", text));
  mode.reads = kind == "r" || both;
  mode.writes = kind != "r" || both;
  mode.begins_empty = kind == "w";
  mode.appends = kind == "a";
  return mode;
}

}  // namespace

class File::Implementation {
 public:
  Implementation(std::string url, std::string_view mode) : url_(std::move(url)), mode_(parse_mode(mode)) {
    const internal::Url place = internal::parse_url(url_);
    bytes_ = place.remote ? open_remote(place, mode_) : open_local(place, mode_);
    if (mode_.appends) position_ = bytes_->size();
  }

  bool is_open() const { return bytes_ != nullptr; }
  const std::string& url() const { return url_; }
  bool is_unwinding() const { return std::uncaught_exceptions() > exceptions_; }
  // What was written and not flushed is given up.
  void give_up() { bytes_.reset(); }

  std::string read(int64_t size) {
    require(mode_.reads, "read", "r");
    if (size < 0) size = std::numeric_limits<int64_t>::max();
    std::string content(buffered(size));
    // What a caller wants is not a reason to take so much memory: bytes_ looks at what there is.
    if (size > kAlwaysRead) require_memory(std::min(size, bytes_->size() - position_));
    if (std::ssize(content) < size) {
      content += bytes_->read_at(position_ + content.size(), size - content.size());
    }
    position_ += content.size();
    return content;
  }

  bool readline(std::string& line) {
    require(mode_.reads, "read", "r");
    line.clear();
    for (;;) {
      std::string_view piece = buffered(kReadAtOnce);
      if (piece.empty()) {
        buffer_ = bytes_->read_at(position_, kReadAtOnce);
        buffer_begin_ = position_;
        if (buffer_.empty()) return !line.empty();
        continue;
      }
      const size_t end = piece.find('\n');
      if (end != std::string::npos) piece = piece.substr(0, end + 1);
      position_ += piece.size();
      if (line.size() + piece.size() > line.capacity()) require_memory(2 * line.capacity());
      line += piece;
      if (end != std::string::npos) return true;
    }
  }

  int64_t seek(int64_t offset, From from) {
    require(true, "seek in", "");
    const int64_t base = from == From::kBegin ? 0 : from == From::kCurrent ? position_ : bytes_->size();
    int64_t place = 0;
    if (__builtin_add_overflow(base, offset, &place) || place < 0)
      throw InvalidArgument(
          fmt::format("seek: {} from {} lies before the begin of '{}'", offset, base, url_));
    return position_ = place;
  }

  int64_t tell() const {
    require(true, "tell in", "");
    return position_;
  }

  void write(std::string_view content) {
    require(mode_.writes, "write to", "w, a or +");
    buffer_.clear();
    position_ = bytes_->write_at(position_, content);
  }

  void flush() {
    require(true, "flush", "");
    if (mode_.writes) bytes_->flush();
  }

  void close() {
    if (!bytes_) return;
    if (mode_.writes) bytes_->flush();
    bytes_.reset();
  }

 private:
  void require(bool allowed, std::string_view doing, std::string_view needed) const {
    if (!bytes_) throw FailedPrecondition(fmt::format("cannot {} '{}': it is closed", doing, url_));
    if (!allowed)
      throw FailedPrecondition(fmt::format("cannot {} '{}': it was not opened with {}", doing, url_, needed));
  }

  // Before it is taken.
  void require_memory(int64_t bytes) const {
    if (bytes <= kAlwaysRead || std::cmp_less_equal(bytes, available_memory())) return;
    throw IoError(fmt::format(
        "'{}' has {} bytes to be read at once, more than the {} bytes of memory that this process "
        "may have: read it in pieces",
        url_, bytes, available_memory()));
  }

  // Of what was read ahead, the bytes from the position on, at most `most`.
  std::string_view buffered(int64_t most) const {
    const int64_t end = buffer_begin_ + buffer_.size();
    if (position_ < buffer_begin_ || position_ >= end) return {};
    const size_t piece = std::min(most, end - position_);
    return std::string_view(buffer_).substr(position_ - buffer_begin_, piece);
  }

  const std::string url_;
  const internal::OpenMode mode_;
  const int exceptions_ = std::uncaught_exceptions();
  std::unique_ptr<internal::OpenBytes> bytes_;
  int64_t position_ = 0;
  std::string buffer_;
  int64_t buffer_begin_ = 0;
};

File::File(const std::string& url, std::string_view mode)
    : implementation_(std::make_unique<Implementation>(url, mode)) {}

File::~File() {
  if (!implementation_ || !implementation_->is_open()) return;
  try {
    if (implementation_->is_unwinding())
      implementation_->give_up();
    else
      implementation_->close();
  } catch (const std::exception& error) {
    log_error(fmt::format("closing '{}': {}", implementation_->url(), error.what()));
  }
}

File::File(File&&) noexcept = default;
File& File::operator=(File&& other) noexcept {
  std::swap(implementation_, other.implementation_);
  return *this;
}

std::string File::read(int64_t size) { return implementation_->read(size); }
bool File::readline(std::string& line) { return implementation_->readline(line); }
std::vector<std::string> File::readlines() {
  std::vector<std::string> lines;
  for (std::string line; readline(line);) lines.push_back(line);
  return lines;
}
int64_t File::seek(int64_t offset, From from) { return implementation_->seek(offset, from); }
int64_t File::tell() const { return implementation_->tell(); }
void File::write(std::string_view content) { implementation_->write(content); }
void File::writelines(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) write(line);
}
void File::flush() { implementation_->flush(); }
void File::close() { implementation_->close(); }

}  // namespace mox::file
