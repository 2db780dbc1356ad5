#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>

#include "moxing/file/internal/copy_task.h"
#include "moxing/file/internal/descriptor.h"
#include "moxing/file/internal/object_name.h"
#include "moxing/file/internal/part_sizes.h"
#include "moxing/file/s3/etag.h"
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

// The upload that an earlier attempt has begun, with the parts that arrived; or a new one.
struct BegunUpload {
  std::string id;
  std::map<int64_t, s3::ListedPart> parts;  // by number
};

BegunUpload begin_upload(s3::Client& client, const s3::ObjectName& object, int64_t part_size,
                         std::stop_token stop) {
  std::vector<s3::ListedUpload> before;
  try {
    before = client.uploads_of(object, stop);
  } catch (const s3::StoreError& error) {
    // Without the right to list uploads there is nothing to go on from.
    if (error.status() != 403 && error.status() != 501) throw;
  }
  if (!before.empty()) {
    const auto newest = std::max_element(
        before.begin(), before.end(), [](const auto& a, const auto& b) { return a.initiated < b.initiated; });
    try {
      BegunUpload upload{newest->id, {}};
      for (s3::ListedPart& part : client.parts_of(object, newest->id, stop)) upload.parts[part.number] = part;
      return upload;
    } catch (const s3::StoreError& error) {
      if (error.code() != "NoSuchUpload") throw;  // listed, but gone
    }
  }
  const int64_t repeated = client.repeated_requests();
  BegunUpload upload{client.create_upload(object, part_size, stop), {}};
  if (client.repeated_requests() != repeated) {
    // An answer may have been lost: then there is an upload that nobody knows.
    std::set<std::string> known{upload.id};
    for (const s3::ListedUpload& other : before) known.insert(other.id);
    for (const s3::ListedUpload& other : client.uploads_of(object, stop))
      if (!known.contains(other.id)) client.abort(object, other.id);
  }
  return upload;
}

struct PartsUpload {
  PartsUpload(std::shared_ptr<CopyRun> run, CopyItem item)
      : run(std::move(run)),
        item(std::move(item)),
        object(object_name(this->item.to)),
        file(this->item.from.path),
        part_size(part_size_for(file.size())),
        parts(count_of_parts(file.size(), part_size)) {}

  void send(int64_t index) {
    if (run->options.stop.stop_requested()) throw s3::Cancelled("cancelled");
    const int64_t offset = index * part_size, length = std::min(part_size, file.size() - offset);
    const CopyRun::Memory memory(*run, length);
    const std::string bytes = file.read(offset, length);
    const std::string md5 = run->md5s.digest(bytes);
    s3::Part& part = parts[index];
    const auto there = begun.parts.find(index + 1);
    if (there != begun.parts.end() && there->second.size == length && there->second.etag == s3::hex(md5)) {
      part = {static_cast<int>(index) + 1, length, md5, there->second.etag};
      run->continued(length);
      return;
    }
    part = run->client->upload_part(object, begun.id, static_cast<int>(index) + 1, bytes, md5,
                                    run->options.stop);
    run->sent(length);
  }

  void end(const std::exception_ptr& error) {
    try {
      if (error) std::rethrow_exception(error);
      file.require_unchanged();
      run->client->complete(object, begun.id, parts, run->options.stop);
      run->arrived(file.size(), false, true);
    } catch (const s3::Cancelled& cancelled) {
      std::string why = cancelled.what();
      try {
        run->client->abort(object, begun.id);
      } catch (const std::exception& failed) {
        why += fmt::format("; its upload in parts stays in the store: {}", failed.what());
      }
      run->missing(item.name, why);
    } catch (...) {
      run->missing(item.name, std::current_exception());
    }
  }

  const std::shared_ptr<CopyRun> run;
  const CopyItem item;
  const s3::ObjectName object;
  const SteadyFile file;
  const int64_t part_size;
  BegunUpload begun;
  std::vector<s3::Part> parts;
};

void require_size(int64_t size, const std::string& name) {
  if (size > kLargestObject)
    throw InvalidArgument(
        fmt::format("'{}' has {} bytes; an object has at most {}", name, size, kLargestObject));
}

void require_version(s3::Client& client, const s3::ObjectName& from, const std::string& etag,
                     std::stop_token stop) {
  const auto found = client.head(from, stop);
  if (!found || !s3::same_version(found->etag, etag))
    throw IoError(fmt::format("'{}' has changed while it was copied", from.shown()));
}

// Within the store, of a source that stays as it is. Swift refuses the condition of an object of parts, whose
// ETag it does not know by the name that it gives it, and none meets a weak one: then the source is looked at
// before and after.
std::string copy_steadily(s3::Client& client, const s3::ObjectName& from, const s3::ObjectName& to,
                          const std::string& etag, std::stop_token stop) {
  try {
    std::string made = client.copy(from, to, etag, stop);
    if (s3::is_weak(etag)) require_version(client, from, etag, stop);
    return made;
  } catch (const s3::StoreError& error) {
    if (error.status() != s3::kChangedStatus) throw;
    require_version(client, from, etag, stop);
  }
  std::string made = client.copy(from, to, "", stop);
  require_version(client, from, etag, stop);
  return made;
}

}  // namespace

void upload(const std::shared_ptr<CopyRun>& run, const CopyItem& item) {
  if (item.to.path.size() > 1024)
    throw InvalidArgument(fmt::format("the key '{}...' has {} bytes; a store takes at most 1024",
                                      item.to.path.substr(0, 60), item.to.path.size()));
  require_size(item.source->length, item.from.path);
  if (item.source->length <= kSingleRequest) {
    const SteadyFile file(item.from.path);
    const CopyRun::Memory memory(*run, file.size());
    const std::string content = file.read(0, file.size());
    file.require_unchanged();
    run->client->put(object_name(item.to), content, run->md5s.digest(content), run->options.stop);
    run->sent(file.size());
    return run->arrived(file.size(), false, true);
  }
  const auto job = std::make_shared<PartsUpload>(run, item);
  job->begun = begin_upload(*run->client, job->object, job->part_size, run->options.stop);
  run_parts(
      run->workers, job->parts.size(), [job](int64_t index) { job->send(index); },
      [job](const std::exception_ptr& error) { job->end(error); });
}

void upload_from_memory(s3::Client& client, const s3::ObjectName& object, std::string_view content) {
  const int64_t size = content.size();
  require_size(size, object.shown());
  if (size <= kSingleRequest) {
    client.put(object, content, s3::md5(content));
    return;
  }
  const int64_t part_size = part_size_for(size);
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

void copy_in_store(const std::shared_ptr<CopyRun>& run, const CopyItem& item) {
  s3::Client& client = *run->client;
  const std::stop_token stop = run->options.stop;
  const s3::ObjectName from = object_name(item.from), to = object_name(item.to);
  const int64_t size = item.source->length;
  const std::string& etag = item.source->etag;
  if (size <= kLargestSingleCopy) {
    const std::string made = copy_steadily(client, from, to, etag, stop);
    const auto found = client.head(to, stop);
    bool comparable = s3::is_md5(etag) && s3::is_md5(made) && found && !found->encrypted;
    if (comparable && made != etag) {
      // The source may be encrypted otherwise, which its listing does not say.
      const auto source = client.head(from, stop);
      comparable = !source || !source->encrypted;
    }
    if (!found || found->size != size || (comparable && made != etag))
      throw DataError(fmt::format("the store's copy '{}' is not like '{}'", to.shown(), from.shown()));
    run->sent(0);
    return run->arrived(size, false, comparable || run->options.verify == Verify::kSize);
  }
  require_size(size, from.shown());
  const int64_t part_size = std::max<int64_t>(part_size_for(size), int64_t{512} << 20);
  const std::string id = client.create_upload(to, part_size, stop);
  const auto parts =
      std::make_shared<std::vector<s3::Part>>(static_cast<size_t>(count_of_parts(size, part_size)));
  run_parts(
      run->workers, parts->size(),
      [run, from, to, etag, size, part_size, id, parts](int64_t index) {
        const int64_t offset = index * part_size;
        (*parts)[index] = run->client->copy_part(from, etag, offset, std::min(part_size, size - offset), to,
                                                 id, static_cast<int>(index) + 1, run->options.stop);
      },
      [run, item, from, etag, to, id, parts, size](std::exception_ptr error) {
        try {
          if (error) std::rethrow_exception(error);
          if (s3::is_weak(etag)) require_version(*run->client, from, etag, run->options.stop);
          run->client->complete(to, id, *parts, run->options.stop);
          return run->arrived(size, false, run->options.verify == Verify::kSize);
        } catch (...) {
          error = std::current_exception();
        }
        try {
          run->client->abort(to, id);
        } catch (const Error&) {
          // What made it fail is what the caller needs to know.
        }
        run->missing(item.name, error);
      });
}

}  // namespace mox::file::internal
