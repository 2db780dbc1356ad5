#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "moxing/file/internal/descriptor.h"
#include "moxing/file/internal/open_bytes.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace mox::file::internal {
namespace {

constexpr int64_t kLeastPiece = 64 << 10;

class LocalBytes : public OpenBytes {
 public:
  LocalBytes(std::string path, Descriptor file, bool appends)
      : path_(std::move(path)), file_(std::move(file)), appends_(appends) {}

  std::string read_at(int64_t offset, int64_t length) override {
    // `length` may be "all that is left" of a file that is short. Its size is a guess: files of /proc say
    // that they have none.
    std::string content;
    while (std::ssize(content) < length) {
      const int64_t begin = offset + std::ssize(content);
      const int64_t piece = std::min(length - std::ssize(content), std::max(kLeastPiece, size() - begin));
      std::string more = read_fully_at(file_.get(), begin, piece, path_);
      const bool ends = std::ssize(more) < piece;
      content = content.empty() ? std::move(more) : std::move(content) + more;
      if (ends) break;
    }
    return content;
  }

  int64_t write_at(int64_t offset, std::string_view content) override {
    if (!appends_) {
      write_fully_at(file_.get(), content, offset, path_);
      return offset + content.size();
    }
    write_fully(file_.get(), content, path_);  // O_APPEND: behind what others have written meanwhile, too
    return size();
  }

  int64_t size() override {
    struct stat status {};
    if (::fstat(file_.get(), &status) != 0) throw_system("look at", path_, errno);
    return status.st_size;
  }

  void flush() override {}  // nothing is kept back here

 private:
  const std::string path_;
  const Descriptor file_;
  const bool appends_;
};

}  // namespace

std::unique_ptr<OpenBytes> open_local(const Url& url, const OpenMode& mode) {
  if (mode.must_exist() && !mode.writes)
    return std::make_unique<LocalBytes>(url.path, open_ordinary_file(url.path), false);
  if (url.path.ends_with('/'))
    throw FailedPrecondition(fmt::format("cannot open '{}': it names a directory", url.path));
  int flags = mode.reads ? O_RDWR : O_WRONLY;
  if (!mode.must_exist()) {
    flags |= O_CREAT;
    const std::string parent = std::filesystem::path(url.path).parent_path();
    if (!parent.empty()) mox::make_directories(parent);
  }
  if (mode.begins_empty) flags |= O_TRUNC;
  if (mode.appends) flags |= O_APPEND;
  return std::make_unique<LocalBytes>(url.path, open_for_writing(url.path, flags), mode.appends);
}

}  // namespace mox::file::internal
