// Objects of a store read as data sets read their files: at places, in any order, by any number of threads,
// without a copy on this machine.
//
// What is asked for, and what will_read announces, is fetched by many requests at a time into memory of this
// process, which has one limit. What is not needed soon leaves it when room is needed, the longest unused
// first. Announcements that find no room are forgotten; what is asked for always finds some. Small objects,
// each read whole, are streamed_objects.h's; what is read once, in order, is forward_object.h's.
//
// Requests are repeated as s3/client.h says. Content is what was there when it was opened: an object that
// changes meanwhile is an IoError that names both ETags, as is a store that cannot be reached; an object that
// has gone is NotFound.
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace mox::file {

// A large object, read by ranges.
class StreamedFile {
 public:
  static std::shared_ptr<const StreamedFile> open(const std::string& url);
  // An object that was looked at before and had this size and this ETag. Only what will_read announces is
  // fetched ahead.
  static std::shared_ptr<const StreamedFile> of(const std::string& url, int64_t size, std::string version);
  ~StreamedFile();

  int64_t size() const;
  const std::string& version() const;  // the ETag: another content has another one

  // offset + out.size() <= size(). Where reads go forward, what follows is fetched ahead.
  void read(int64_t offset, std::span<std::byte> out) const;
  void will_read(int64_t offset, int64_t length) const;
  // Nobody needs again what lies before `offset`: its memory is given back at once.
  void forget_before(int64_t offset) const;

 private:
  struct Place;
  explicit StreamedFile(std::unique_ptr<Place> place);
  void announce(int64_t first_block, int64_t end_block) const;

  const std::unique_ptr<Place> place_;
};

// The limit of what is in memory (default 256 MiB).
void set_stream_memory(int64_t bytes);
int64_t stream_memory();

// What was in memory at most since the process began or since the last call of this, which begins anew.
int64_t take_stream_memory_peak();

}  // namespace mox::file
