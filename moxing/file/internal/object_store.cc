#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "moxing/file/copy.h"
#include "moxing/file/internal/copy_task.h"
#include "moxing/file/internal/object_name.h"
#include "moxing/file/internal/removal_report.h"
#include "moxing/file/internal/store.h"
#include "moxing/file/s3/digest.h"
#include "moxing/file/s3/store_error.h"
#include "moxing/file/store_client.h"
#include "runtime/base/error.h"

namespace mox::file::internal {
namespace {

[[noreturn]] void refuse_object_directory(std::string_view doing, const Url& url) {
  throw FailedPrecondition(fmt::format("cannot {} '{}': it names a directory", doing, to_string(url)));
}

// The entries below a prefix, from the pages of a listing.
class ListedEntries {
 public:
  ListedEntries(std::string prefix, bool recursive) : prefix_(std::move(prefix)), recursive_(recursive) {}

  void add(const s3::Listing& page) {
    any_ = any_ || !page.objects.empty() || !page.prefixes.empty();
    for (const s3::ListedObject& object : page.objects) {
      if (!object.key.starts_with(prefix_))
        throw DataError(fmt::format("the store has listed '{}' for the prefix '{}'", object.key, prefix_));
      add_object(object.key.substr(prefix_.size()), object);
    }
    for (const std::string& prefix : page.prefixes)
      if (prefix.size() > prefix_.size())
        add_directory(prefix.substr(prefix_.size(), prefix.size() - prefix_.size() - 1));
  }

  bool any() const { return any_; }  // the directory itself counts

  std::vector<DirectoryEntry> sorted() && {
    // A directory before what is in it: "a" < "a/b".
    std::stable_sort(entries_.begin(), entries_.end(),
                     [](const DirectoryEntry& a, const DirectoryEntry& b) { return a.name < b.name; });
    return std::move(entries_);
  }

 private:
  void add_object(const std::string& name, const s3::ListedObject& object) {
    if (recursive_)
      for (size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1))
        add_directory(name.substr(0, slash));
    // What stands for a directory, this one or one in it. With content it is a file, of an odd name
    // or of none.
    if ((name.empty() || name.ends_with('/')) && object.size == 0) return;
    entries_.push_back({name, {}, {.length = object.size, .mtime = object.mtime, .etag = object.etag}});
  }
  void add_directory(const std::string& name) {
    if (directories_.insert(name).second) entries_.push_back({name, {}, {.is_directory = true}});
  }

  const std::string prefix_;
  const bool recursive_;
  bool any_ = false;
  std::set<std::string> directories_;
  std::vector<DirectoryEntry> entries_;
};

class ObjectStore : public Store {
 public:
  std::optional<Stat> stat(const Url& url) override {
    const auto client = store_client();
    try {
      if (!url.path.empty() && !url.path.ends_with('/'))
        if (const auto found = client->head(object_name(url)))
          return Stat{.length = found->size, .mtime = found->mtime, .etag = found->etag};
      const s3::Listing page = client->list_some(object_name(as_directory(url)), "", 1);
      const bool any = url.path.empty() || !page.objects.empty() || !page.prefixes.empty();
      return any ? std::optional(Stat{.is_directory = true}) : std::nullopt;
    } catch (const NotFound&) {
      return std::nullopt;  // not even the bucket
    }
  }

  std::vector<DirectoryEntry> list(const Url& url, bool recursive, const std::stop_token& stop) override {
    const auto client = store_client();
    const std::string prefix = as_directory(url).path;
    ListedEntries entries(prefix, recursive);
    client->list(
        object_name(as_directory(url)), recursive ? "" : "/",
        [&](const s3::Listing& page) { entries.add(page); }, stop);
    if (!entries.any() && !url.path.empty()) {
      if (stat(url)) throw FailedPrecondition(fmt::format("cannot list '{}': it is a file", to_string(url)));
      throw NotFound(fmt::format("no directory '{}'{}", to_string(url), absent_bucket(url)));
    }
    return std::move(entries).sorted();
  }

  std::string read(const Url& url) override {
    if (url.path.empty()) refuse_object_directory("read", url);
    const auto client = store_client();
    const s3::ObjectName object = object_name(url);
    const auto found = client->head_with_checksum(object);
    if (!found) {
      if (stat(url)) refuse_object_directory("read", url);
      throw NotFound(fmt::format("no object '{}'{}", to_string(url), absent_bucket(url)));
    }
    return download_to_memory(*client, object, *found);
  }

  void write(const Url& url, std::string_view content) override {
    require_object(url, "write");
    upload_from_memory(*store_client(), object_name(url), content);
  }

  void append(const Url& url, std::string_view content) override {
    require_object(url, "append to");
    const auto client = store_client();
    const s3::ObjectName object = object_name(url);
    const auto found = client->head_with_checksum(object);
    if (client->has_append(url.scheme) && (!found || found->appendable)) {
      client->append(object, found ? found->next_position : 0, content);
      return;
    }
    std::string whole = found ? download_to_memory(*client, object, *found) : std::string();
    whole += content;
    upload_from_memory(*client, object, whole);
  }

  void make_directories(const Url& url) override {
    const Url directory = as_directory(url);
    if (directory.path.empty()) {
      if (!stat(directory))
        throw NotFound(fmt::format("no bucket '{}'; buckets are not made here", url.bucket));
      return;
    }
    store_client()->put(object_name(directory), "", s3::md5(""));
  }

  void make_directory(const Url& url) override {
    if (stat(url))
      throw FailedPrecondition(
          fmt::format("cannot make the directory '{}': the name is taken", to_string(url)));
    make_directories(url);
  }

  void remove_file(const Url& url) override {
    if (url.path.empty()) refuse_object_directory("remove", url);
    const auto client = store_client();
    // Stores say that they have removed what was not there, too.
    if (!client->head(object_name(url)))
      throw NotFound(fmt::format("no object '{}'{}", to_string(url), absent_bucket(url)));
    client->remove(object_name(url));
  }

  void remove_tree(const Url& url) override {
    const Url directory = as_directory(url);
    require_no_bucket(directory);
    const auto client = store_client();
    std::vector<std::string> keys;
    client->list(object_name(directory), "", [&](const s3::Listing& page) {
      for (const s3::ListedObject& object : page.objects) keys.push_back(object.key);
    });
    if (keys.empty()) return remove_file(url);
    RemovalReport report;
    remove_keys(*client, url, keys, report);
    report.throw_if_any(to_string(url));
  }

  void remove_directory(const Url& url) override { remove_file(as_directory(url)); }

  void remove_listed(const Url& url, const std::vector<DirectoryEntry>& entries) override {
    const Url directory = as_directory(url);
    require_no_bucket(directory);
    const auto client = store_client();
    // The objects that stand for directories, if there are any.
    std::vector<std::string> keys{directory.path};
    for (const DirectoryEntry& entry : entries)
      keys.push_back(directory.path + entry.name + (entry.stat.is_directory ? "/" : ""));
    RemovalReport report;
    remove_keys(*client, url, keys, report);
    for (const s3::ListedObject& object : client->list_some(object_name(directory), "", 1).objects)
      report.keep(shown_key(url, object.key), "it has come meanwhile, and is at no other place");
    report.throw_if_any(to_string(url));
  }

 private:
  static void require_no_bucket(const Url& directory) {
    if (directory.path.empty())
      throw FailedPrecondition(
          fmt::format("'{}' is a whole bucket, which is not removed here", to_string(directory)));
  }
  static std::string shown_key(const Url& url, const std::string& key) {
    return fmt::format("{}://{}/{}", url.scheme, url.bucket, key);
  }
  static void remove_keys(s3::Client& client, const Url& url, const std::vector<std::string>& keys,
                          RemovalReport& report) {
    for (const s3::KeptKey& kept : client.remove_many(object_name(url), keys))
      report.keep(shown_key(url, kept.key), kept.why);
  }
  static void require_object(const Url& url, std::string_view doing) {
    if (url.path.empty() || url.path.ends_with('/')) refuse_object_directory(doing, url);
  }
};

}  // namespace

std::string absent_bucket(const Url& url) {
  if (!url.remote) return "";
  try {
    store_client()->list_some({url.bucket, "", url.scheme}, "", 1);
  } catch (const NotFound&) {
    return fmt::format("; there is no bucket '{}'", url.bucket);
  } catch (const IoError&) {
    // What is not there is not there, whatever this is.
  }
  return "";
}

Store& object_store() {
  static ObjectStore store;
  return store;
}

}  // namespace mox::file::internal
