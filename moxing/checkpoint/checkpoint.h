// Checkpoints: everything a run needs to go on as if it had not stopped.
//
// On disk, docs/checkpoints.md has the details:
//
//   <log_dir>/checkpoint-<step>/variables.safetensors   the variables
//                               optimizer.safetensors   the optimizer's slots
//                               state.json   step, data position, ..., and the checksums of the other two
//
// A checkpoint appears whole or not at all: its files are written to `checkpoint-<step>.saving`, everything
// is fsynced, and the directory is renamed. Older checkpoints are deleted only after that. Every byte is
// under a checksum.
//
// All paths are of this machine; a URL is an InvalidArgument.
//
// Threads and processes: saving into one log_dir is serialised by a lock (flock on the directory) that waits
// for up to a minute; reading needs no lock.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "moxing/checkpoint/named_array.h"

namespace mox {

struct Checkpoint {
  int64_t global_step = 0;  // >= 0
  std::vector<NamedArray> variables;
  std::vector<NamedArray> optimizer_slots;
  // Each value is JSON text (data position, random seed, schedule, metrics, ...). It comes back as equal
  // JSON, without white space. Whole numbers must fit 64 bits, so that none is rounded; nesting goes down to
  // 100 levels.
  std::map<std::string, std::string> state;
  bool keep_for_good = false;  // whatever CheckpointRetention says when others are saved
};

// Which checkpoints stay when a new one is saved. The new one always stays, and what was saved to be
// kept for good.
struct CheckpointRetention {
  int64_t keep_last = 5;         // the newest ones by step, >= 1
  int64_t keep_every_steps = 0;  // also every checkpoint whose step is a multiple of this, for good; 0: none
};

struct CheckpointEntry {
  int64_t step = 0;
  std::string path;
};

// Saves `checkpoint` under `log_dir` (made if it is missing) and returns its path; when it returns, the
// checkpoint is durable. A checkpoint of the same step is replaced: at any moment one of the two is there,
// whole. Then the checkpoints that `retention` does not keep are deleted; one that cannot be deleted is a
// logged warning.
//
// Throws InvalidArgument for values that cannot be saved (see write_safetensors) and IoError if the system
// refuses: full disk, read-only directory. After an exception the directory holds the checkpoints it held
// before and no leftover.
std::string save_checkpoint(const std::string& log_dir, const Checkpoint& checkpoint,
                            const CheckpointRetention& retention = {});

// Makes `log_dir` ready for saving: makes it, finds out that it can be written, removes what a crash has left
// behind (directories that end in .saving, .previous or .deleting). For the begin of a run: better here than
// after an hour. Throws IoError.
void prepare_checkpoint_directory(const std::string& log_dir);

// The checkpoints of `log_dir`, ordered by step; none if the directory does not exist. Their content is not
// looked at. Throws IoError.
std::vector<CheckpointEntry> list_checkpoints(const std::string& log_dir);

// The path of the checkpoint of the highest step.
std::optional<std::string> latest_checkpoint(const std::string& log_dir);

// The path of the checkpoint that `path` means: itself if it is a checkpoint, else the latest of the log_dir
// that it is. Throws NotFound if there is none.
std::string resolve_checkpoint(const std::string& path);

// Loads the checkpoint that `path` means (see resolve_checkpoint), and sets `*directory` to where it was
// found: of a log_dir in which a run saves, the latest may be gone a moment after it was found. Variables and
// slots come sorted by name.
//
// Throws NotFound if there is none, and DataError if anything about it is wrong: a missing, truncated or
// damaged file, files of two different checkpoints. The text names the file, what is wrong, and the newest
// older checkpoint that is intact with the way to go on from it. There is no silent fall-back.
Checkpoint load_checkpoint(const std::string& path, std::string* directory = nullptr);

// The same for the latest checkpoint of `log_dir`; nothing if there is none.
std::optional<Checkpoint> load_latest_checkpoint(const std::string& log_dir,
                                                 std::string* directory = nullptr);

// SHA-256, in hexadecimal digits, over the names, dtypes, shapes and bytes of arrays, ordered by name, and
// nothing else. Two runs with the same digest have bitwise equal weights.
std::string arrays_digest(std::span<const NamedArray> arrays);

// arrays_digest of the variables of the checkpoint that `path` means. Throws as load_checkpoint does.
std::string checkpoint_digest(const std::string& path);

}  // namespace mox
