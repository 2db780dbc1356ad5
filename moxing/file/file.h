// mox::file: one way to files, on local disks and in object stores.
//
//   for (const std::string& name : mox::file::list_directory("s3://bucket/data")) ...
//   mox::file::copy_parallel("s3://bucket/data", "/cache/data");                      // copy.h
//   std::string text = mox::file::read("/cache/data/labels.txt");
//
// Every function takes, in any combination,
//   a local path    /data/x, data/x
//   file://         file:///data/x, a local path as well
//   s3://, obs://   s3://bucket/key: an object of the store that the environment or the options file.* name
//   (docs/files.md).
//                   The key is taken byte for byte: "%41", "+" and "//" in it mean themselves.
// Any other scheme, and a slip such as "s3:/bucket/key", is an InvalidArgument; none of them becomes
// a local name.
//
// An object store has no directories. Here "s3://bucket/a" is a directory if there are keys that begin with
// "a/"; an empty one is the empty object "a/". A key and a directory may have the same name there: exists,
// stat, read, copy, remove mean the file then; is_directory, rename and all that lists mean the directory.
//
// Errors: NotFound for what is not there, InvalidArgument for a malformed name, FailedPrecondition for the
// wrong kind of thing (a directory where a file is needed), IoError for what the system or the store refuses;
// the text names the file, the operation, and, for a store, status, code, request id and attempt. No text has
// a secret in it.
//
// Threads: any number may call. Functions block; requests to a store are repeated and end by
// their deadline (docs/files.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mox::file {

// Whether a name is that of an object in a store; an empty one is not. Throws InvalidArgument for
// a malformed name.
bool is_remote(std::string_view url);

// The path of a local name: "file:///data" is "/data". Throws InvalidArgument for a remote one.
std::string local_path(std::string_view url);

// The content of a file, bytes as they are.
std::string read(const std::string& url);

// Makes or replaces a file; readers see the old content or the whole new one, and when this returns the
// content is durable. A local file's directory is made if it is not there, as object stores do.
void write(const std::string& url, std::string_view content);

// Adds to the end of a file, which is made if it is not there. In a store without a call for it (all but OBS)
// the object is written anew: others that append to it at the same time lose, and it costs the whole object.
// A link of this user's, or root's, is followed; another user's is an IoError.
void append(const std::string& url, std::string_view content);

// `append` for objects in a store alone; a local name is an InvalidArgument.
void append_remote(const std::string& url, std::string_view content);

struct Stat {
  int64_t length = 0;  // bytes; 0 for a directory
  std::chrono::system_clock::time_point
      mtime{};         // of an object: when it was written. A directory of a store has none (epoch)
  std::string etag{};  // of an object, without quotes (a weak one as it stands, W/"..."); else empty
  bool is_directory = false;
};

bool exists(const std::string& url);
bool is_directory(const std::string& url);
Stat stat(const std::string& url);  // follows symbolic links

struct DirectoryEntry {
  std::string name;  // in its directory; in what is recursive, from the top: "a/b"
  std::string url;   // for the functions of this header
  Stat stat;
};

struct ListOptions {
  bool recursive = false;
  bool skip_file = false;  // leaves out files
  bool skip_dir = false;   // leaves out directories
};

// The names in a directory, sorted by bytes; with `recursive` those below it, too, as "a/b". Follows symbolic
// links; one that leads to a directory it lies in is an IoError, and one that leads nowhere is listed as a
// file of length 0.
std::vector<std::string> list_directory(const std::string& url, const ListOptions& options = {});

// The same with what is known of each: one request for a thousand files, where calls of `stat` would
// take a thousand.
std::vector<DirectoryEntry> scan_dir(const std::string& url, const ListOptions& options = {});

struct WalkEntry {
  std::string directory;                 // its URL or path
  std::vector<std::string> directories;  // names in it, sorted
  std::vector<std::string> files;
};

// A directory and all below it, each directory before those in it, in sorted order.
std::vector<WalkEntry> walk(const std::string& url);

// The files and directories whose names match, sorted: * and ? stand for any text and any one byte within a
// name, [a-z] and [!a-z] for a byte, ** as a whole name for any number of directories, \ before one of these
// for itself. None: an empty list. The bucket of a store is not a pattern. Names that begin with a dot match
// only patterns that do.
std::vector<std::string> glob(const std::string& pattern);

// Bytes of a file, or with `recursive` of all files below a directory. A directory without `recursive`
// is a FailedPrecondition.
int64_t get_size(const std::string& url, bool recursive = false);

// Makes a directory and its parents; one that exists is well. In a store: the empty object "key/".
void make_dirs(const std::string& url);

// Makes a directory in one that exists (in a store: in any). FailedPrecondition if the name is taken.
void mk_dir(const std::string& url);

// Removes a file, or with `recursive` a directory and all below it (links, not what they lead to). What is
// not removed is said: NotFound if nothing is there, FailedPrecondition for a directory without `recursive`
// (an empty one is removed), for a whole bucket and for "/", IoError that names every file that stays and
// why; the others are gone then.
void remove(const std::string& url, bool recursive = false);

// Gives a file or a directory another name, on the same disk or store or another one: what has to be copied
// is copied, checked and made durable, and only then is the source removed. A file replaces a file. A
// directory's new name must be free (FailedPrecondition). After an error the source is whole.
void rename(const std::string& from, const std::string& to);

}  // namespace mox::file
