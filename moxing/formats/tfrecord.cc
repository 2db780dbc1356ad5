#include "moxing/formats/tfrecord.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fnmatch.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "moxing/file/file.h"
#include "moxing/file/jobs/local_places.h"
#include "moxing/file/streams/streamed_file.h"
#include "moxing/formats/internal/equal_records.h"
#include "moxing/formats/internal/shard_names.h"
#include "moxing/formats/internal/tfrecord_index.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"
#include "runtime/base/opened_file.h"
#include "runtime/base/random.h"

namespace mox::data {
namespace {

using internal::FileIdentity;

// More files than this are opened for each read, so that a set of thousands stays within the
// limit on descriptors.
constexpr size_t kMostDescriptors = 256;

void read_at(int descriptor, const std::string& path, uint64_t offset, std::span<std::byte> out) {
  while (!out.empty()) {
    const ssize_t got = ::pread(descriptor, out.data(), out.size(), offset);
    if (got < 0) {
      if (errno == EINTR) continue;
      throw IoError(fmt::format("cannot read '{}' at offset {}: {}", path, offset, std::strerror(errno)));
    }
    if (got == 0)
      throw DataError(
          fmt::format("'{}' ends at offset {}, {} bytes before a record's end: it has become shorter "
                      "since it was opened",
                      path, offset, out.size()));
    out = out.subspan(got);
    offset += got;
  }
}

FileIdentity identity_of(int descriptor, const std::string& path) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0)
    throw IoError(fmt::format("cannot look at '{}': {}", path, std::strerror(errno)));
  if (!S_ISREG(status.st_mode))
    throw DataError(fmt::format("'{}' is not a regular file: a TFRecord file is expected", path));
  return {static_cast<uint64_t>(status.st_size),
          int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
}

// A file of records on this machine, or an object of a store.
struct OpenedRecords {
  FileDescriptor descriptor;
  std::shared_ptr<const file::StreamedFile> object;
  FileIdentity identity;

  void read(const std::string& path, uint64_t offset, std::span<std::byte> out) const {
    if (object)
      object->read(offset, out);
    else
      read_at(descriptor.get(), path, offset, out);
  }
};

OpenedRecords open_records(const std::string& path) {
  OpenedRecords opened;
  if (file::is_remote(path)) {
    opened.object = file::StreamedFile::open(path);
    opened.identity = {static_cast<uint64_t>(opened.object->size()),
                       static_cast<int64_t>(stable_hash(opened.object->version()))};
  } else {
    opened.descriptor = open_regular_file(path);
    opened.identity = identity_of(opened.descriptor.get(), path);
  }
  return opened;
}

// What would be told to be damaged.
void refuse_compressed(const OpenedRecords& file, const std::string& path) {
  constexpr size_t kLengthBytes = 8;
  std::byte head[kLengthBytes + sizeof(uint32_t)];
  if (file.identity.bytes < sizeof head) return;
  file.read(path, 0, head);
  uint32_t given = 0;
  std::memcpy(&given, head + kLengthBytes, sizeof given);
  if (masked_crc32c(std::span(head).first(kLengthBytes)) == given) return;  // a record
  const auto byte = [&](size_t i) { return std::to_integer<unsigned>(head[i]); };
  const char* how = nullptr;
  if (byte(0) == 0x1f && byte(1) == 0x8b)
    how = "gzip; unpack it: gunzip < FILE > NEW";
  else if (byte(0) == 0x78 && (byte(0) * 256 + byte(1)) % 31 == 0)
    how =
        "zlib; unpack it: python3 -c 'import sys, zlib; "
        "sys.stdout.buffer.write(zlib.decompress(sys.stdin.buffer.read()))' < FILE > NEW";
  else if (byte(0) == 0x28 && byte(1) == 0xb5 && byte(2) == 0x2f && byte(3) == 0xfd)
    how = "Zstandard; unpack it: zstd -d < FILE > NEW";
  if (how) throw DataError(fmt::format("'{}' is compressed by {}", path, how));
}

std::string index_path(const std::string& path, const TfRecordOptions& options) {
  const bool remote = file::is_remote(path);
  std::string directory = options.index_directory;
  if (remote && directory.empty()) directory = file::places_directory("") + "/index";
  if (directory.empty()) return path + ".mox-index";
  const std::filesystem::path absolute =
      remote ? std::filesystem::path(path) : std::filesystem::absolute(path).lexically_normal();
  return (std::filesystem::path(directory) /
          fmt::format("{}-{:016x}.mox-index", absolute.filename().string(), stable_hash(absolute.string())))
      .string();
}

// Says how far the counting is, at most every few seconds.
class Progress {
 public:
  explicit Progress(size_t files) : files_(files), last_(Clock::now()) {}
  void report(size_t file, uint64_t offset, uint64_t bytes) {
    if (Clock::now() - last_ < std::chrono::seconds(3)) return;
    last_ = Clock::now();
    log_info(fmt::format("counting TFRecord samples: file {} of {}, {} of {} MB", file + 1, files_,
                         offset >> 20, bytes >> 20));
  }

 private:
  using Clock = std::chrono::steady_clock;
  size_t files_;
  Clock::time_point last_;
};

}  // namespace

namespace {

// An index beside the files, or one that another process is writing (write_file_atomically), is no file of
// records, even where the pattern ends with a star.
bool is_index(const std::string& path) {
  return path.ends_with(".mox-index") || path.find(".mox-index.tmp.") != std::string::npos;
}

std::vector<std::string> match_objects(const std::string& pattern) {
  std::vector<std::string> matched = file::glob(pattern);
  if (matched.empty()) throw NotFound(fmt::format("no file matches '{}'", pattern));
  std::erase_if(matched, is_index);
  return internal::choose_shards(pattern, std::move(matched));
}

// Writers make such files where there are fewer records than shards; mostly a copy was interrupted.
void warn_of_empty(const std::vector<std::string>& paths, const std::vector<uint64_t>& first_records) {
  int64_t count = 0;
  std::string first;
  for (size_t i = 0; i < paths.size(); ++i)
    if (first_records[i] == first_records[i + 1] && count++ == 0) first = paths[i];
  if (count > 0)
    log_warning(fmt::format("{} of {} files have no records: '{}'{}", count, paths.size(), first,
                            count > 1 ? ", ..." : ""));
}

}  // namespace

std::vector<std::string> match_files(const std::string& patterns) {
  std::vector<std::string> paths;
  for (size_t begin = 0; begin <= patterns.size();) {
    const size_t end = std::min(patterns.find(',', begin), patterns.size());
    const std::string pattern = patterns.substr(begin, end - begin);
    begin = end + 1;
    if (pattern.empty())
      throw InvalidArgument(fmt::format("the file pattern '{}' has an empty part", patterns));
    if (file::is_remote(pattern)) {
      std::vector<std::string> found = match_objects(pattern);
      paths.insert(paths.end(), found.begin(), found.end());
      continue;
    }
    glob_t found{};
    const int status = ::glob(pattern.c_str(), 0, nullptr, &found);
    std::vector<std::string> matched;
    for (size_t i = 0; i < found.gl_pathc; ++i) matched.emplace_back(found.gl_pathv[i]);
    ::globfree(&found);
    if (status == GLOB_NOMATCH) throw NotFound(fmt::format("no file matches '{}'", pattern));
    if (status != 0) throw IoError(fmt::format("the files of '{}' cannot be listed", pattern));
    std::erase_if(matched, is_index);
    matched = internal::choose_shards(pattern, std::move(matched));
    paths.insert(paths.end(), matched.begin(), matched.end());
  }
  if (paths.empty()) throw NotFound(fmt::format("no file matches '{}'", patterns));
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  return paths;
}

std::vector<std::string> match_files(const std::string& directory, const std::string& name) {
  if (name.empty() || name.find('/') != std::string::npos)
    throw InvalidArgument(fmt::format(
        "match_files: expected a pattern for names in '{}', without '/', given is '{}'", directory, name));
  const std::filesystem::path parent(directory);
  const std::string pattern = (parent / name).string();
  std::vector<std::string> paths;
  try {
    for (const file::DirectoryEntry& entry : file::scan_dir(directory.empty() ? "." : directory))  // sorted
      if (::fnmatch(name.c_str(), entry.name.c_str(), FNM_PERIOD) == 0)
        paths.push_back((parent / entry.name).string());
  } catch (const NotFound&) {            // nothing matches
  } catch (const FailedPrecondition&) {  // nor in a file
  }
  std::erase_if(paths, is_index);
  paths = internal::choose_shards(pattern, std::move(paths), pattern.size() - name.size());
  if (paths.empty()) throw NotFound(fmt::format("no file matches '{}'", pattern));
  return paths;
}

std::span<std::byte> RecordBuffer::take(size_t bytes) {
  if (capacity_ < bytes) {
    data_.reset(new std::byte[bytes]);
    capacity_ = bytes;
  }
  return {data_.get(), bytes};
}

std::shared_ptr<const TfRecordFiles> TfRecordFiles::open(const std::vector<std::string>& paths,
                                                         const TfRecordOptions& options) {
  if (paths.empty()) throw InvalidArgument("TfRecordFiles::open: no files are given");
  std::shared_ptr<TfRecordFiles> files(new TfRecordFiles);
  files->paths_ = paths;
  files->first_ = {0};
  Progress progress(paths.size());
  bool said_unwritable = false;
  for (size_t i = 0; i < paths.size(); ++i) {
    const std::string& path = paths[i];
    OpenedRecords file = open_records(path);
    const FileIdentity identity = file.identity;
    const std::string cache = index_path(path, options);
    std::optional<std::vector<uint64_t>> offsets;
    if (options.cache_index) offsets = internal::load_index(cache, identity);
    files->kept_indexes_.push_back(offsets ? cache : "");
    if (!offsets) {
      refuse_compressed(file, path);
      offsets = internal::walk_records(
          [&](uint64_t offset, std::span<std::byte> out) { file.read(path, offset, out); }, identity.bytes,
          path, [&](uint64_t offset) { progress.report(i, offset, identity.bytes); });
      if (options.cache_index) try {
          if (const auto parent = std::filesystem::path(cache).parent_path(); !parent.empty())
            make_directories(parent.string());
          internal::save_index(cache, identity, *offsets);
        } catch (const IoError& error) {
          if (!std::exchange(said_unwritable, true))
            log_warning(
                fmt::format("the index of '{}' cannot be kept, so its records are counted at each start "
                            "({}); TfRecordOptions::index_directory names another place",
                            path, error.what()));
        }
    }
    files->bytes_ += identity.bytes;
    files->first_.push_back(files->first_.back() + offsets->size() - 1);
    files->offsets_.push_back(std::move(*offsets));
    files->objects_.push_back(std::move(file.object));
    // Of an object none, which is -1.
    if (paths.size() <= kMostDescriptors) files->descriptors_.push_back(file.descriptor.release());
  }
  if (files->size() == 0)
    throw DataError(fmt::format("'{}'{} has no records: {} bytes", paths.front(),
                                paths.size() > 1 ? fmt::format(" with {} more files", paths.size() - 1) : "",
                                files->bytes_));
  warn_of_empty(paths, files->first_);
  files->warn_of_copies();
  return files;
}

void TfRecordFiles::warn_of_copies() const {
  std::vector<internal::RecordFile> files;
  for (size_t i = 0; i < paths_.size(); ++i)
    files.push_back({paths_[i], objects_[i] ? objects_[i]->version() : "", offsets_[i]});
  internal::warn_of_equal_records(files, [&](size_t file, uint64_t end) {
    uint32_t checksum = 0;
    read_bytes(file, end - sizeof checksum, std::as_writable_bytes(std::span(&checksum, 1)));
    return checksum;
  });
}

TfRecordFiles::~TfRecordFiles() {
  for (int descriptor : descriptors_)
    if (descriptor >= 0) ::close(descriptor);
}

TfRecordFiles::Place TfRecordFiles::place(int64_t index) const {
  MOX_ASSERT(index >= 0 && index < size(), "a record's index is in range");
  const uint64_t at = index;
  const auto file =
      static_cast<size_t>(std::upper_bound(first_.begin(), first_.end(), at) - first_.begin()) - 1;
  const size_t row = at - first_[file];
  return {file, offsets_[file][row], offsets_[file][row + 1]};
}

void TfRecordFiles::read_bytes(size_t file, uint64_t offset, std::span<std::byte> out) const {
  const std::string& path = paths_[file];
  if (const auto& object = objects_[file]) return object->read(offset, out);
  if (!descriptors_.empty()) return read_at(descriptors_[file], path, offset, out);
  const FileDescriptor opened = open_regular_file(path);
  read_at(opened.get(), path, offset, out);
}

std::span<const std::byte> TfRecordFiles::read(int64_t index, RecordBuffer* buffer) const {
  const Place at = place(index);
  require_memory(at.end - at.begin, paths_[at.file]);
  const auto framed = buffer->take(at.end - at.begin);
  read_bytes(at.file, at.begin, framed);
  try {
    return internal::verified_record(framed, paths_[at.file], at.begin);
  } catch (const DataError& error) {
    const std::string& kept = kept_indexes_[at.file];
    if (kept.empty()) throw;
    throw DataError(
        fmt::format("{}. Where records begin was read from '{}': if the file is whole, remove that, and "
                    "it is made anew",
                    error.what(), kept));
  }
}

void TfRecordFiles::will_read(int64_t index) const {
  const Place at = place(index);
  if (const auto& object = objects_[at.file]) return object->will_read(at.begin, at.end - at.begin);
  if (descriptors_.empty()) return;
  ::posix_fadvise(descriptors_[at.file], at.begin, at.end - at.begin, POSIX_FADV_WILLNEED);
}

std::string TfRecordFiles::locate(int64_t index) const {
  const Place at = place(index);
  return fmt::format("'{}', offset {} (record {})", paths_[at.file], at.begin,
                     static_cast<uint64_t>(index) - first_[at.file]);
}

std::string TfRecordFiles::describe() const {
  uint32_t checksum = 0;
  for (const auto& offsets : offsets_) checksum = crc32c(std::as_bytes(std::span(offsets)), checksum);
  return fmt::format("tfrecord({} records in {} files, lengths {:08x})", size(), paths_.size(), checksum);
}

std::vector<std::span<const std::byte>> parse_tfrecords(std::span<const std::byte> content,
                                                        const std::string& name) {
  const auto offsets = internal::walk_records(
      [&](uint64_t offset, std::span<std::byte> out) {
        std::memcpy(out.data(), content.data() + offset, out.size());
      },
      content.size(), name, [](uint64_t) {});
  std::vector<std::span<const std::byte>> records;
  for (size_t i = 1; i < offsets.size(); ++i)
    records.push_back(internal::verified_record(content.subspan(offsets[i - 1], offsets[i] - offsets[i - 1]),
                                                name, offsets[i - 1]));
  return records;
}

}  // namespace mox::data
