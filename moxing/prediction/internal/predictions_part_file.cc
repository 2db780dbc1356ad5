#include "moxing/prediction/internal/predictions_part_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <span>

#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace mox::internal {
namespace {

constexpr size_t kBufferBytes = 1 << 20;

constexpr const char* kAdvice = "name a file in a directory that is there and that this user may write";

[[noreturn]] void fail(const IoError& error) {
  throw IoError(
      fmt::format("the predictions cannot be written: {}; {}, with room for it", error.what(), kAdvice));
}

NewFile made(const std::string& path) {
  if (is_there_as_directory(path))
    throw InvalidArgument(fmt::format("predictions is '{}', which is a directory; {}", path, kAdvice));
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  try {
    return NewFile(path);
  } catch (const IoError& error) {
    const std::string text =
        fmt::format("predictions is '{}', which cannot be written: {}; {}", path, error.what(), kAdvice);
    // Another time a full disk has room, but a place that is none stays so.
    if (::access(parent.empty() ? "." : parent.c_str(), W_OK | X_OK) != 0) throw InvalidArgument(text);
    throw IoError(text);
  }
}

}  // namespace

PredictionsPartFile::PredictionsPartFile(const std::string& path) : file_(made(path)) {}

void PredictionsPartFile::write(std::string_view bytes) {
  buffer_ += bytes;
  if (buffer_.size() >= kBufferBytes) flush();
}

void PredictionsPartFile::flush() try {
  file_.write(std::as_bytes(std::span(buffer_)));
  buffer_.clear();
} catch (const IoError& error) {
  fail(error);
}

void PredictionsPartFile::finish() {
  flush();
  try {
    file_.publish();
  } catch (const IoError& error) {
    fail(error);
  }
}

}  // namespace mox::internal
