// What holds files: the local file systems, or an object store. The functions of file.h and copies are
// written on this alone.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "moxing/file/file.h"
#include "moxing/file/internal/url.h"

namespace mox::file::internal {

class Store {
 public:
  virtual ~Store() = default;

  // Nothing if there is neither a file nor a directory.
  virtual std::optional<Stat> stat(const Url& url) = 0;

  // What is in a directory, or with `recursive` below it, sorted by name; a directory before what is in it.
  // Entries have names and Stats; their urls are empty. NotFound, FailedPrecondition if it is a file.
  // Cancelled (store_error.h) when `stop` asks for it while a store is waited for.
  virtual std::vector<DirectoryEntry> list(const Url& url, bool recursive,
                                           const std::stop_token& stop = {}) = 0;

  virtual std::string read(const Url& url) = 0;
  virtual void write(const Url& url, std::string_view content) = 0;
  virtual void append(const Url& url, std::string_view content) = 0;

  virtual void make_directories(const Url& url) = 0;
  virtual void make_directory(const Url& url) = 0;

  virtual void remove_file(const Url& url) = 0;
  virtual void remove_tree(const Url& url) = 0;  // as file.h says
  // Removes a directory alone, with nothing that has come into it meanwhile: on a disk that is a
  // FailedPrecondition then; in a store the empty object that stands for the directory goes. NotFound.
  virtual void remove_directory(const Url& url) = 0;
  // Removes what `list` has given of a directory, recursively, and the directory itself. What else has come
  // into it stays, which is an IoError.
  virtual void remove_listed(const Url& url, const std::vector<DirectoryEntry>& entries) = 0;
};

Store& local_store();
Store& object_store();
Store& store_of(const Url& url);

// As Store::stat, for what is recursive: of a file and a directory of one name, which a store may
// have, the directory.
std::optional<Stat> stat_of_tree(const Url& url);

// Says that a directory which is to be removed is not empty: FailedPrecondition.
[[noreturn]] void refuse_full_directory(const Url& url);

// For the text of a NotFound: "; there is no bucket 'B'" if that is why (the store is asked), else empty.
std::string absent_bucket(const Url& url);

}  // namespace mox::file::internal
