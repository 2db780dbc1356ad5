// Snapshots: the trained variables of a run at one step, alone, beside its checkpoints, from which nothing
// can be continued. Dimension-reduced training finds its directions in them; weight averaging may
// read them, too.
//
// On disk: <directory>/snapshot-<step>.safetensors, one file each, written whole or not at all, every tensor
// under a checksum. Leftovers of a crash have other names and are not looked at.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "moxing/boost/column_chunks.h"
#include "moxing/boost/weight_layout.h"
#include "moxing/checkpoint/named_array.h"
#include "moxing/checkpoint/safetensors.h"
#include "runtime/base/opened_file.h"
#include "runtime/comm/communicator.h"

namespace mox::boost {

struct SnapshotFile {
  int64_t step = 0;
  std::string path;
};

struct SnapshotWriting {
  int64_t keep = 0;                               // the newest ones, the new one among them; 0: all
  std::string run = "";                           // identifies the run, in the file's metadata
  DirectoryLink link = DirectoryLink::kFollowed;  // refused: the directory is no link, which is an IoError
};
// Writes the snapshot of `step`, replacing one of the same step, and then deletes those that are not to be
// kept. Makes the directory. Returns the file's path. Throws IoError, and InvalidArgument as
// write_safetensors does.
std::string write_snapshot(const std::string& directory, int64_t step, std::span<const NamedArray> variables,
                           const SnapshotWriting& writing = {});

// Deletes those of later steps, and says so. Nothing if there is no such directory. Throws IoError.
void delete_snapshots_after(const std::string& directory, int64_t step, DirectoryLink link);

// Those of `directory` by step; none if there is no such directory. Throws IoError.
std::vector<SnapshotFile> list_snapshots(const std::string& directory);

// The variables of a snapshot. Throws FailedPrecondition if they are not float32.
WeightLayout layout_of_snapshot(const SafetensorsReader& file);

// Vectors of one length of which any columns can be read: what a basis is computed from.
class ColumnSource {
 public:
  virtual ~ColumnSource() = default;
  virtual int64_t vectors() const = 0;
  virtual int64_t columns() const = 0;
  // Threads: any number.
  virtual void read(int64_t vector, int64_t first_column, std::span<float> out) const = 0;
  // Where a value comes from, for messages: "'run/snapshot-8.safetensors', variable 'w', element 17".
  virtual std::string describe(int64_t vector, int64_t column) const = 0;
};

// All snapshots of a directory as vectors in the order of their steps.
class SnapshotSet : public ColumnSource {
 public:
  // Opens all of them, reads them once and compares their checksums, files shared out over the workers and
  // the ranks, which construct theirs together and must all see the directory. `expected`: the variables of
  // the model; with no columns, those of the first snapshot.
  //
  // Throws NotFound if there are none; FailedPrecondition for one of another network or of another run than
  // the first, and if ranks see different files; DataError for one that is damaged.
  SnapshotSet(const std::string& directory, const WeightLayout& expected, Communicator& ranks,
              const Workers& workers);

  int64_t vectors() const override { return files_.size(); }
  int64_t columns() const override { return layout_.columns(); }
  void read(int64_t vector, int64_t first_column, std::span<float> out) const override;
  std::string describe(int64_t vector, int64_t column) const override;
  const WeightLayout& layout() const { return layout_; }
  // The run that has written them (SnapshotWriting); "" if they do not say.
  const std::string& run() const { return run_; }

 private:
  std::vector<SafetensorsReader> files_;
  WeightLayout layout_;
  std::string run_;
};

}  // namespace mox::boost
