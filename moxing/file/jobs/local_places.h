// Where a job keeps on this machine what lies in an object store: data sets, checkpoints, and runs on their
// way there.
//
// Several processes of a machine may ask for the same place: one fills it under a lock, the others wait and
// find it. A place that was left half filled, by kill -9 too, is filled to its end by the next one.
//
// Errors are those of file.h. Threads: any.
#pragma once

#include <memory>
#include <string>

namespace mox::file {
namespace internal {
class PlaceUse;
}

// The directory below which places are made: `configured` if it is not empty, else $XDG_CACHE_HOME/moxing,
// else ~/.cache/moxing, else moxing-UID in the directory for temporary files, which is made. Throws
// FailedPrecondition if somebody else has made that one, or may write to it.
std::string places_directory(const std::string& configured);

// All of the following give a local path back as it is, and take "file://" off.

// A data set (a directory, or one file) on this machine: its local path. Copied when it is not there yet, or
// is another one in the store now: names, sizes and ETags decide. Every file is checked as copy.h says when
// it arrives. Then the place is compared by names and sizes.
std::string local_data(const std::string& url, const std::string& places);

// The same for as long as the object lives: no process of this machine puts other content into its place.
// Where the store has other content while somebody uses what was there, that gets a place of its own
// (`...-2`), which is removed by the next one that comes when nobody uses it.
class DataInUse {
 public:
  DataInUse(const std::string& url, const std::string& places);
  ~DataInUse();
  DataInUse(DataInUse&&) noexcept;
  DataInUse& operator=(DataInUse&&) noexcept;

  const std::string& path() const { return path_; }
  // Another text is other content. Empty of a local path.
  const std::string& content() const { return content_; }

 private:
  std::string path_, content_;
  std::unique_ptr<internal::PlaceUse> use_;
};

// A checkpoint, a log_dir, or a file of weights. Of a log_dir its newest complete checkpoint and its best
// state are copied, and the answer is a log_dir that has these; what is looked for beside a checkpoint
// (labels.txt) comes, too.
std::string local_checkpoint(const std::string& url, const std::string& places);

// A log_dir: its local directory with the checkpoints and the other files that the store has. If this machine
// has a newer checkpoint (it lost the store before its end), its files stay as they are. If another machine
// has trained the run meanwhile and this one's checkpoints are not of that training, the store's count: what
// was here is moved aside, and a warning says where to. Of the other files that are at both, what this
// machine has not sent yet stays, and what another one has written is fetched (internal/fetch_files.h). A
// directory in which a run is going on is left as it is. NotFound where there is no such bucket.
std::string local_run(const std::string& url, const std::string& places);

// The same directory, without looking into it.
std::string place_of_run(const std::string& url, const std::string& places);

}  // namespace mox::file
