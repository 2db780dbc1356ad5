// TFRecord files: a sequence of byte records with checksums
// (https://www.tensorflow.org/tutorials/load_data/tfrecord, "TFRecords format details").
//
// A record is its length (8 bytes, little-endian), a masked CRC-32C of the length, the bytes, and a masked
// CRC-32C of the bytes. Both checksums are verified on every read. Uncompressed files only.
//
// Records have no fixed length, so reaching the i-th needs an index of offsets. It is made once, by a walk
// over the lengths (no data is read), and cached in a file; a cached index that is damaged, or belongs to
// another size or modification time of the records file, is made anew. Opening a large set says what it does
// and how far it is.
//
// Paths may name objects of a store (s3://BUCKET/KEY). Records are read by ranges, those that are announced
// or follow each other ahead of their use (moxing/file/streams/streamed_file.h); the walk passes over the
// whole object once, and its index is kept on this machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/function_ref.h"

namespace mox {
class NewFile;
}
namespace mox::file {
class StreamedFile;
}

namespace mox::data {

// CRC-32C (Castagnoli); pass the previous value to continue.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t previous = 0);

// As TFRecord stores it: rotated right by 15 bits plus a constant, so that a checksum over data that contains
// checksums stays sound.
uint32_t masked_crc32c(std::span<const std::byte> bytes);

struct TfRecordOptions {
  // Cache the index in a file. Where it cannot be written, the walk is repeated at each start, which is said
  // in the log.
  bool cache_index = true;

  // Where the index goes, under a name made of the records file's name and its path; empty: beside the
  // records file as NAME.mox-index, and of an object of a store where data sets of stores are kept.
  std::string index_directory = {};
};

// The files that match any of `patterns` (glob(3): * ? [a-z]), sorted and without duplicates. A pattern may
// list several, separated by commas. Of a pattern that ends with a star, copies (NAME.bak, NAME~) are left
// out with a warning, shards NAME-00001-of-00004 must be all there and of one number (DataError), and files
// of other names beside them are left out. Throws NotFound for one that matches nothing, InvalidArgument for
// an empty list.
std::vector<std::string> match_files(const std::string& patterns);

// The same of the files in a directory whose names match `name`, one pattern without slashes (InvalidArgument
// for another one). The directory stands for itself, whatever characters its path has.
std::vector<std::string> match_files(const std::string& directory, const std::string& name);

// A buffer for records that grows and is reused. One a thread.
class RecordBuffer {
 public:
  // At least `bytes` of memory, its content undefined.
  std::span<std::byte> take(size_t bytes);

 private:
  std::unique_ptr<std::byte[]> data_;
  size_t capacity_ = 0;
};

// A set of TFRecord files as one sequence of records, file after file. Immutable: every function may be
// called from several threads at once.
class TfRecordFiles {
 public:
  // Throws NotFound and IoError for files, DataError (path, offset) for a length that fails its checksum or
  // passes the end of the file. Files without records, and those whose records another one has (a shard that
  // was copied under a second number), are warnings.
  static std::shared_ptr<const TfRecordFiles> open(const std::vector<std::string>& paths,
                                                   const TfRecordOptions& options = {});
  ~TfRecordFiles();

  int64_t size() const { return first_.back(); }
  uint64_t bytes() const { return bytes_; }  // of all files
  const std::vector<std::string>& paths() const { return paths_; }

  // The bytes of record `index`, 0 <= index < size(), which live in `buffer` until its next use. Throws
  // DataError (path, offset) if a checksum fails or the file has changed, IoError if it cannot be read.
  std::span<const std::byte> read(int64_t index, RecordBuffer* buffer) const;

  // A hint that `index` is read soon.
  void will_read(int64_t index) const;

  // "'train-00001', offset 2134 (record 17)", for messages.
  std::string locate(int64_t index) const;

  // Numbers of files and records and a checksum over all lengths, without directories.
  std::string describe() const;

 private:
  struct Place {
    size_t file;
    uint64_t begin, end;  // of the record with its frame
  };
  TfRecordFiles() = default;
  Place place(int64_t index) const;
  void read_bytes(size_t file, uint64_t offset, std::span<std::byte> out) const;
  void warn_of_copies() const;

  std::vector<std::string> paths_;
  std::vector<int> descriptors_;  // of each file, if there are few; else opened for each read
  std::vector<std::shared_ptr<const file::StreamedFile>> objects_;  // of each path that names one
  std::vector<std::vector<uint64_t>> offsets_;  // of each file: the records' begins and the last one's end
  std::vector<std::string> kept_indexes_;       // of each file: where its offsets were read from; or empty
  std::vector<uint64_t> first_;                 // of each file: its first record's index; then the total
  uint64_t bytes_ = 0;
};

// The records of a file held in memory, which `content` must outlive. `name` stands for the path in messages.
// Throws DataError as TfRecordFiles do.
std::vector<std::span<const std::byte>> parse_tfrecords(std::span<const std::byte> content,
                                                        const std::string& name);

// Writes one TFRecord file. The bytes go to a temporary name beside `path` and are synced and renamed by
// `close`: whatever happens, `path` is whole or untouched. Used by one thread.
class TfRecordWriter {
 public:
  explicit TfRecordWriter(std::string path);  // throws IoError
  ~TfRecordWriter();                          // removes what was not closed
  TfRecordWriter(const TfRecordWriter&) = delete;
  TfRecordWriter& operator=(const TfRecordWriter&) = delete;

  void write(std::span<const std::byte> record);  // throws IoError
  void close();                                   // once, last; throws IoError
  int64_t records() const { return records_; }
  uint64_t bytes() const { return bytes_; }  // written so far, frames included

 private:
  void append(std::span<const std::byte> bytes);
  void flush();

  std::unique_ptr<NewFile> file_;  // until it is closed
  std::vector<std::byte> buffer_;
  int64_t records_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace mox::data
