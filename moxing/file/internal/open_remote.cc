#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <future>

#include "moxing/file/copy.h"
#include "moxing/file/internal/copy_task.h"
#include "moxing/file/internal/descriptor.h"
#include "moxing/file/internal/object_name.h"
#include "moxing/file/internal/open_bytes.h"
#include "moxing/file/internal/part_file.h"
#include "moxing/file/internal/part_sizes.h"
#include "moxing/file/internal/store.h"
#include "moxing/file/s3/store_error.h"
#include "moxing/file/store_client.h"
#include "runtime/base/error.h"
#include "runtime/base/opened_file.h"

namespace mox::file::internal {
namespace {

// Reads blocks, and while one is read the next one, if the reader goes forward.
class ReadObject : public OpenBytes {
 public:
  ReadObject(std::shared_ptr<s3::Client> client, s3::ObjectName object, s3::ObjectInfo info)
      : client_(std::move(client)), object_(std::move(object)), info_(std::move(info)) {}
  ~ReadObject() override {
    stop_.request_stop();
    if (next_.valid()) next_.wait();
  }

  std::string read_at(int64_t offset, int64_t length) override {
    std::string content;
    const int64_t end = length > info_.size - offset ? info_.size : offset + length;
    while (offset < end) {
      const int64_t index = offset / kRange;
      need(index);
      const int64_t from = offset - index * kRange;
      const auto piece = std::min<int64_t>(block_.size() - from, end - offset);
      content.append(block_, static_cast<size_t>(from), static_cast<size_t>(piece));
      offset += piece;
    }
    return content;
  }
  int64_t write_at(int64_t, std::string_view) override { return 0; }  // File does not let anybody
  int64_t size() override { return info_.size; }
  void flush() override {}

 private:
  void need(int64_t index) {
    if (index == index_) return;
    std::string block;
    if (next_.valid() && next_index_ == index) {
      block = next_.get();
    } else {
      if (next_.valid()) next_.wait(), next_ = {};
      block = fetch(index);
    }
    const bool forward = index == index_ + 1;
    block_ = std::move(block);
    index_ = index;
    next_index_ = index + 1;
    if (forward && next_index_ * kRange < info_.size && !next_.valid())
      next_ = std::async(std::launch::async, [this, next = next_index_] { return fetch(next); });
  }

  std::string fetch(int64_t index) {
    const int64_t offset = index * kRange, length = std::min(kRange, info_.size - offset);
    if (length == info_.size)  // compared with its MD5
      return client_->get_same(object_, info_, nullptr, stop_.get_token());
    return client_->get_range(object_, offset, length, info_.etag, stop_.get_token());
  }

  const std::shared_ptr<s3::Client> client_;
  const s3::ObjectName object_;
  const s3::ObjectInfo info_;
  std::stop_source stop_;
  std::string block_;
  int64_t index_ = -1, next_index_ = -1;
  std::future<std::string> next_;
};

// A temporary file without a name, which goes away with the process.
Descriptor nameless_file() {
  std::string path = (std::filesystem::temp_directory_path() / "moxing-").string() + std::string(6, 'X');
  Descriptor file(::mkostemp(path.data(), O_CLOEXEC));
  if (file.get() < 0) throw_system("create a temporary file", path, errno);
  ::unlink(path.c_str());
  return file;
}

// A directory of this user alone, by a name that nobody could know before; gone with the object.
class TemporaryDirectory {
 public:
  TemporaryDirectory()
      : path_((std::filesystem::temp_directory_path() / "moxing-").string() + std::string(6, 'X')) {
    if (::mkdtemp(path_.data()) == nullptr) throw_system("create a temporary directory", path_, errno);
  }
  ~TemporaryDirectory() {
    std::error_code stays;
    std::filesystem::remove_all(path_, stays);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Kept in a temporary file, and uploaded whole.
class WrittenObject : public OpenBytes {
 public:
  WrittenObject(const std::shared_ptr<s3::Client>& client, const Url& url,
                std::optional<s3::ObjectInfo> before, const OpenMode& mode)
      : url_(url), appends_(mode.appends), changed_(mode.begins_empty || !before), file_(nameless_file()) {
    if (!before || mode.begins_empty) return;
    require_free_disk(std::filesystem::temp_directory_path(), before->size);
    // Through memory when it is small, and by the checked copy when it is not.
    if (before->size <= kSingleRequest) {
      write_fully_at(file_.get(), client->get_same(object_name(url), *before), 0, to_string(url));
      return;
    }
    const TemporaryDirectory own;
    const std::string place = own.path() + "/object";
    mox::file::copy(to_string(url), place);
    file_ = Descriptor(open_kept_file(place).release());
  }

  std::string read_at(int64_t offset, int64_t length) override {
    return read_fully_at(file_.get(), offset, std::min(length, std::max<int64_t>(0, size() - offset)),
                         to_string(url_));
  }
  int64_t write_at(int64_t offset, std::string_view content) override {
    if (appends_) offset = size();
    write_fully_at(file_.get(), content, offset, "a temporary file for " + to_string(url_));
    changed_ = true;
    return offset + content.size();
  }
  int64_t size() override {
    const off_t end = ::lseek(file_.get(), 0, SEEK_END);
    if (end < 0) throw_system("look at a temporary file for", to_string(url_), errno);
    return end;
  }
  void flush() override {
    if (!changed_) return;
    try {
      mox::file::copy(fmt::format("/proc/self/fd/{}", file_.get()), to_string(url_), {.skip_same = false});
    } catch (const Error& error) {
      throw IoError(
          fmt::format("what was written to '{}' is not in the store: {}", to_string(url_), error.what()));
    }
    changed_ = false;
  }

 private:
  const Url url_;
  const bool appends_;
  bool changed_;
  Descriptor file_;
};

// Mode "a": what was written waits for flush, which adds it as `append` does.
class AppendedObject : public OpenBytes {
 public:
  AppendedObject(const Url& url, std::optional<s3::ObjectInfo> before)
      : url_(url), must_be_made_(!before), there_(before ? before->size : 0) {}

  std::string read_at(int64_t, int64_t) override { return ""; }  // File does not let anybody
  int64_t write_at(int64_t, std::string_view content) override {
    waiting_ += content;
    return size();
  }
  int64_t size() override { return there_ + waiting_.size(); }
  void flush() override {
    if (waiting_.empty() && !must_be_made_) return;
    object_store().append(url_, waiting_);
    there_ += waiting_.size();
    must_be_made_ = false;
    waiting_.clear();
  }

 private:
  const Url url_;
  bool must_be_made_;
  int64_t there_;
  std::string waiting_;
};

}  // namespace

std::unique_ptr<OpenBytes> open_remote(const Url& url, const OpenMode& mode) {
  if (url.path.empty() || (url.path.ends_with('/') && mode.writes))
    throw FailedPrecondition(fmt::format("cannot open '{}': it names a directory", to_string(url)));
  auto client = store_client();
  auto found = client->head(object_name(url));
  if (!found && mode.must_exist()) {
    if (object_store().stat(url))
      throw FailedPrecondition(fmt::format("'{}' is a directory; a file is needed", to_string(url)));
    throw NotFound(fmt::format("no object '{}'{}", to_string(url), absent_bucket(url)));
  }
  if (!mode.writes)
    return std::make_unique<ReadObject>(std::move(client), object_name(url), *std::move(found));
  if (mode.appends && !mode.reads) return std::make_unique<AppendedObject>(url, std::move(found));
  return std::make_unique<WrittenObject>(std::move(client), url, std::move(found), mode);
}

}  // namespace mox::file::internal
