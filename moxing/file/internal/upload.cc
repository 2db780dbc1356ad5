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
#include "runtime/base/log.h"

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

// How often a file's upload begins anew, from nothing, after another process has taken the one that was begun
// for a part of its own.
constexpr int kMostBeginnings = 3;

// Whether another process, which uploads to the same key, has overwritten a part, or ended the upload.
bool is_taken(const s3::StoreError& error) {
  return error.code() == "InvalidPart" || error.code() == "NoSuchUpload";
}

// The upload that an earlier attempt has begun, with the parts that arrived; or a new one.
struct BegunUpload {
  std::string id;
  std::map<int64_t, s3::ListedPart> parts;  // by number
  bool is_new = false;                      // nobody else's
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
      BegunUpload upload{.id = newest->id, .parts = {}};
      for (s3::ListedPart& part : client.parts_of(object, newest->id, stop)) upload.parts[part.number] = part;
      return upload;
    } catch (const s3::StoreError& error) {
      if (error.code() != "NoSuchUpload") throw;  // listed, but gone
    }
  }
  const int64_t repeated = client.repeated_requests();
  BegunUpload upload{.id = client.create_upload(object, part_size, stop), .parts = {}, .is_new = true};
  if (client.repeated_requests() != repeated) {
    // An answer may have been lost: then there is an upload that nobody knows.
    std::set<std::string> known{upload.id};
    for (const s3::ListedUpload& other : before) known.insert(other.id);
    for (const s3::ListedUpload& other : client.uploads_of(object, stop))
      if (!known.contains(other.id)) client.abort(object, other.id);
  }
  return upload;
}

struct PartsUpload : std::enable_shared_from_this<PartsUpload> {
  PartsUpload(std::shared_ptr<CopyRun> run, CopyItem item)
      : run(std::move(run)),
        item(std::move(item)),
        object(object_name(this->item.to)),
        file(this->item.from.path),
        part_size(part_size_for(file.size())),
        parts(count_of_parts(file.size(), part_size)) {}

  // Goes on from what an earlier attempt has sent.
  void begin() {
    begun = begin_upload(*run->client, object, part_size, run->options.stop);
    if (begun.is_new) made.push_back(begun.id);
    send_all();
  }

  // The upload before is somebody else's, too. Those that are under way are not looked for: their parts may
  // be of other contents.
  void begin_anew() {
    begun = {
        .id = run->client->create_upload(object, part_size, run->options.stop), .parts = {}, .is_new = true};
    made.push_back(begun.id);
    ++beginnings;
    send_all();
  }

  void send_all() {
    run_parts(
        run->workers, parts.size(), [job = shared_from_this()](int64_t index) { job->send(index); },
        [job = shared_from_this()](const std::exception_ptr& error) { job->end(error); });
  }

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
    } catch (const s3::Cancelled& cancelled) {
      return cancel(cancelled.what());
    } catch (const s3::StoreError& refused) {
      if (is_taken(refused) && beginnings < kMostBeginnings) return try_anew();
      return fail(std::current_exception());
    } catch (...) {
      return fail(std::current_exception());
    }
    take_back_others();
    run->arrived(file.size(), false, true);
  }

  void try_anew() {
    run->workers.add_first([job = shared_from_this()] {
      try {
        job->begin_anew();
      } catch (const s3::Cancelled& cancelled) {
        job->cancel(cancelled.what());
      } catch (...) {
        job->fail(std::current_exception());
      }
    });
  }

  // One that was there before may be another process's.
  void cancel(std::string why) {
    if (!begun.is_new) why += "; the upload in parts that was begun before stays in the store";
    if (const std::string left = take_back(""); !left.empty())
      why += fmt::format("; its upload in parts stays in the store: {}", left);
    run->missing(item.name, why);
  }

  // The same copy goes on from the parts that have arrived.
  void fail(const std::exception_ptr& error) {
    take_back_others();
    run->missing(item.name, error);
  }

  void take_back_others() {
    if (const std::string left = take_back(begun.id); !left.empty())
      log_warning(fmt::format("an upload in parts of '{}' stays in the store: {}", object.shown(), left));
  }

  // Ends the uploads that were begun here, but for `kept`. Why that could not be; "": it could.
  std::string take_back(const std::string& kept) {
    std::string left;
    for (const std::string& id : made) {
      if (id == kept) continue;
      try {
        run->client->abort(object, id);
      } catch (const std::exception& failed) {
        left += (left.empty() ? "" : "; ") + std::string(failed.what());
      }
    }
    return left;
  }

  const std::shared_ptr<CopyRun> run;
  const CopyItem item;
  const s3::ObjectName object;
  const SteadyFile file;
  const int64_t part_size;
  BegunUpload begun;
  std::vector<std::string> made;  // ids of the uploads that were begun here
  int beginnings = 0;             // after the first
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
  job->begin();
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
  require_size(size, object.shown());
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
