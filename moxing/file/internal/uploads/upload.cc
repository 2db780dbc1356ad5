#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include "moxing/file/internal/copy_task.h"
#include "moxing/file/internal/descriptor.h"
#include "moxing/file/internal/object_name.h"
#include "moxing/file/internal/part_sizes.h"
#include "moxing/file/internal/uploads/begun_upload.h"
#include "moxing/file/internal/uploads/parts_job.h"
#include "moxing/file/s3/store_error.h"
#include "runtime/base/error.h"

namespace mox::file::internal {
namespace {

// A local file that must stay as it is while it is read.
class SteadyFile {
 public:
  explicit SteadyFile(const std::string& path)
      : path_(path), file_(open_ordinary_file(path)), before_(look()) {}
  int64_t size() const { return before_.st_size; }
  std::string read(int64_t offset, int64_t length) const {
    std::string content = read_fully_at(file_.get(), offset, length, path_);
    if (std::ssize(content) != length) changed();
    return content;
  }
  void require_unchanged() const {
    const struct stat now = look();
    if (now.st_size != before_.st_size || now.st_mtim.tv_sec != before_.st_mtim.tv_sec ||
        now.st_mtim.tv_nsec != before_.st_mtim.tv_nsec)
      changed();
  }

 private:
  [[noreturn]] void changed() const {
    throw IoError(fmt::format("'{}' has changed while it was read", path_));
  }
  struct stat look() const {
    struct stat status {};
    if (::fstat(file_.get(), &status) != 0) throw_system("look at", path_, errno);
    return status;
  }
  const std::string path_;
  const Descriptor file_;
  const struct stat before_;
};

class PartsUpload : public PartsJob {
 public:
  PartsUpload(const std::shared_ptr<CopyRun>& run, const CopyItem& item, std::unique_ptr<SteadyFile> file)
      : PartsJob(run, item, file->size(), part_size_for(file->size())), file_(std::move(file)) {}

 private:
  // Each part tells by its ETag whether it is this file's.
  bool may_go_on_from(const BegunUpload::Parts&) const override { return true; }

  s3::Part send(const std::string& upload, const Piece& piece, const s3::ListedPart* there) override {
    const CopyRun::Memory memory(*run_, piece.length);
    const std::string bytes = file_->read(piece.offset, piece.length);
    const std::string md5 = run_->md5s.digest(bytes);
    if (there && there->size == piece.length && there->etag == s3::hex(md5)) {
      run_->continued(piece.length);
      return {piece.number, piece.length, md5, there->etag};
    }
    s3::Part part = run_->client->upload_part(object_, upload, piece.number, bytes, md5, run_->options.stop);
    run_->sent(piece.length);
    return part;
  }

  void require_same_source() override { file_->require_unchanged(); }
  bool is_checked() const override { return true; }

  const std::unique_ptr<SteadyFile> file_;
};

}  // namespace

void upload(const std::shared_ptr<CopyRun>& run, const CopyItem& item) {
  if (item.to.path.size() > 1024)
    throw InvalidArgument(fmt::format("the key '{}...' has {} bytes; a store takes at most 1024",
                                      item.to.path.substr(0, 60), item.to.path.size()));
  // It may have another size than when it was listed, and be empty, of which no upload in parts can be made.
  auto file = std::make_unique<SteadyFile>(item.from.path);
  const int64_t size = file->size();
  require_object_size(size, item.from.path);
  if (size > kSingleRequest) return std::make_shared<PartsUpload>(run, item, std::move(file))->begin();
  const CopyRun::Memory memory(*run, size);
  const std::string content = file->read(0, size);
  file->require_unchanged();
  run->client->put(object_name(item.to), content, run->md5s.digest(content), run->options.stop);
  run->sent(size);
  run->arrived(size, false, true);
}

namespace {

void upload_parts_from_memory(s3::Client& client, const s3::ObjectName& object, std::string_view content) {
  const int64_t size = content.size(), part_size = part_size_for(size);
  const std::string id = client.create_upload(object, part_size);
  std::vector<s3::Part> parts(count_of_parts(size, part_size));
  std::exception_ptr failure;
  {
    Workers workers(8);
    run_parts(
        workers, parts.size(),
        [&](int64_t index) {
          const std::string_view bytes = content.substr(index * part_size, part_size);
          parts[index] = client.upload_part(object, id, static_cast<int>(index) + 1, bytes, s3::md5(bytes));
        },
        [&](const std::exception_ptr& error) { failure = error; });
    workers.wait();
  }
  try {
    if (failure) std::rethrow_exception(failure);
    client.complete(object, id, parts);
  } catch (...) {
    try {
      client.abort(object, id);
    } catch (const Error&) {
      // What made it fail is what the caller needs to know.
    }
    throw;
  }
}

}  // namespace

void upload_from_memory(s3::Client& client, const s3::ObjectName& object, std::string_view content) {
  const int64_t size = content.size();
  require_object_size(size, object.shown());
  if (size <= kSingleRequest) {
    client.put(object, content, s3::md5(content));
    return;
  }
  for (int beginnings = 0;; ++beginnings) {
    try {
      return upload_parts_from_memory(client, object, content);
    } catch (const s3::StoreError& refused) {
      if (!is_taken(refused) || beginnings == kMostBeginnings) throw;
    }
  }
}

}  // namespace mox::file::internal
