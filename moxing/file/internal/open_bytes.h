// The bytes behind an open File, wherever they are: read and written at places.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "moxing/file/internal/url.h"

namespace mox::file::internal {

struct OpenMode {
  bool reads = false, writes = false;
  bool begins_empty = false;  // w
  bool appends = false;       // a
  bool must_exist() const { return !begins_empty && !appends; }
};

class OpenBytes {
 public:
  virtual ~OpenBytes() = default;
  // Fewer than `length` only at the end.
  virtual std::string read_at(int64_t offset, int64_t length) = 0;
  // Where the file is opened for appending, at its end, whatever `offset` says. Returns the place behind what
  // was written.
  virtual int64_t write_at(int64_t offset, std::string_view content) = 0;
  virtual int64_t size() = 0;
  // What was written is where others find it.
  virtual void flush() = 0;
};

std::unique_ptr<OpenBytes> open_local(const Url& url, const OpenMode& mode);
std::unique_ptr<OpenBytes> open_remote(const Url& url, const OpenMode& mode);

}  // namespace mox::file::internal
