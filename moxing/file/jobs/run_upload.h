// Takes what a run writes into its local log_dir to an object store, on a thread of its own.
//
// A checkpoint, in log_dir or deeper (best/), is uploaded when it is complete, its manifest (state.json)
// last, so that a checkpoint in the store that has one is whole; one that the run deletes, having a newer one
// or another best state, is deleted there, its manifest first. Other files (metrics, configuration, reports,
// what a program writes) follow when they change, and go when the run deletes them and others of their
// directory stay; what is of this machine alone is told by its exact name. What is neither file nor
// directory, and links to directories, are left out, which a warning says. What this run has not uploaded is
// left alone; where another machine has written a file of the run meanwhile, that is put aside on this one,
// `<directory>.aside-NUMBER`, before this run's takes its place, which a warning says.
//
// A store that cannot be reached does not stop the run: it is said once, tried again and again, and said when
// it has caught up.
#pragma once

#include <memory>
#include <string>

namespace mox::file {

struct RunUploadOptions {
  double look_every_s = 1;       // for checkpoints
  double files_every_s = 10;     // for files that grow
  double retry_every_s = 15;     // while the store is lost
  double finish_within_s = 600;  // for what is missing at the end
};

class RunUpload {
 public:
  // From a local directory to a URL. Other processes must not upload to the same one (the run's lock sees to
  // it on a machine).
  RunUpload(std::string directory, std::string url, const RunUploadOptions& options = {});

  // As `finish`, but what fails is logged.
  ~RunUpload();
  RunUpload(const RunUpload&) = delete;
  RunUpload& operator=(const RunUpload&) = delete;

  // Uploads what is missing; call when the run has written its last. Throws IoError, which names the local
  // directory that has all, if the store has not everything in time.
  void finish();

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace mox::file
