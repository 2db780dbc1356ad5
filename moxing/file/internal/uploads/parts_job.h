// One file on its way into an object in parts: on from what an earlier attempt has sent, and anew where
// another process has taken its upload.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "moxing/file/internal/copy_task.h"
#include "moxing/file/internal/uploads/begun_upload.h"
#include "runtime/base/error.h"

namespace mox::file::internal {

// Parts of this source have no future: what was begun of them is ended.
class SourceIsGone : public IoError {
 public:
  using IoError::IoError;
};

class PartsJob : public std::enable_shared_from_this<PartsJob> {
 public:
  PartsJob(std::shared_ptr<CopyRun> run, CopyItem item, int64_t size, int64_t part_size);
  virtual ~PartsJob() = default;
  PartsJob(const PartsJob&) = delete;
  PartsJob& operator=(const PartsJob&) = delete;

  // Sends the parts on the run's workers, and reports the end to the run.
  void begin();

 protected:
  struct Piece {
    int number = 0;  // from 1
    int64_t offset = 0, length = 0;
  };
  // Whether a job may go on from an upload with these parts.
  virtual bool may_go_on_from(const BegunUpload::Parts& parts) const = 0;
  // Brings a piece into `upload`. `there`: what that has under its number already, or nullptr.
  virtual s3::Part send(const std::string& upload, const Piece& piece, const s3::ListedPart* there) = 0;
  // Called when all parts are there: throws if they are of different contents.
  virtual void require_same_source() = 0;
  // Whether the end of the copy is known to be the source's content.
  virtual bool is_checked() const = 0;
  // Whether what was refused is to be sent in another way, from the beginning: once at most.
  virtual bool changes_way(const s3::StoreError&) { return false; }

  int64_t count() const { return std::ssize(parts_); }
  Piece piece(int64_t index) const;
  void set_part_size(int64_t part_size);

  const std::shared_ptr<CopyRun> run_;
  const CopyItem item_;
  const s3::ObjectName object_;

 private:
  void send_all();
  void begin_anew();
  void try_anew();
  void end(const std::exception_ptr& error);
  void give_up(std::string why);
  void fail(const std::exception_ptr& error);
  void take_back_others();
  std::string take_back(const std::string& kept);

  const int64_t size_;
  int64_t part_size_;
  BegunUpload begun_;
  std::vector<std::string> made_;  // ids of the uploads that were begun here
  int beginnings_ = 0;             // after the first
  std::vector<s3::Part> parts_;
};

}  // namespace mox::file::internal
