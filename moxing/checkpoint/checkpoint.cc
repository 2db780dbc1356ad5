#include "moxing/checkpoint/checkpoint.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <string_view>

#include "moxing/checkpoint/internal/checkpoint_directory.h"
#include "moxing/checkpoint/internal/state_file.h"
#include "moxing/checkpoint/safetensors.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/function_ref.h"
#include "runtime/base/local_name.h"
#include "runtime/base/log.h"

namespace mox {
namespace {

namespace fs = std::filesystem;
using internal::StateFile;

constexpr const char* kVariablesFile = "variables.safetensors";
constexpr const char* kOptimizerFile = "optimizer.safetensors";
constexpr const char* kStateFile = "state.json";
constexpr const char* kKeptFile = "kept_for_good";  // there or not
constexpr uintmax_t kMaxStateBytes = uintmax_t{1} << 30;

void make_fresh_directory(const std::string& path) {
  std::error_code error;
  if (!fs::create_directory(path, error))
    throw IoError(fmt::format("cannot make the directory '{}': {}", path,
                              error ? error.message() : std::strerror(EEXIST)));
}

std::vector<CheckpointEntry> list_once(const std::string& log_dir) {
  std::vector<CheckpointEntry> entries;
  std::set<int64_t> published;
  std::error_code error;
  fs::directory_iterator it(log_dir, error);
  if (error == std::errc::no_such_file_or_directory) return entries;
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    const auto name = internal::parse_checkpoint_name(it->path().filename().string());
    std::error_code ignored;
    if (!name || !it->is_directory(ignored)) continue;
    if (!name->suffix.empty() && name->suffix != ".previous") continue;
    if (name->suffix.empty()) published.insert(name->step);
    entries.push_back({name->step, it->path().string()});
  }
  if (error) {
    const std::string text = fmt::format("cannot list the directory '{}': {}", log_dir, error.message());
    if (!is_unusable_place(error.value())) throw IoError(text);
    throw UnusablePlace(text + "; name a directory that this user may read, or a path that is not there yet");
  }
  std::erase_if(entries, [&](const CheckpointEntry& entry) {
    return entry.path.ends_with(".previous") && published.count(entry.step) > 0;
  });
  std::sort(entries.begin(), entries.end(),
            [](const CheckpointEntry& a, const CheckpointEntry& b) { return a.step < b.step; });
  return entries;
}

// Deletes the checkpoints that `retention` does not keep. The new one is durable by now, so a failure here is
// no failure of the save.
void delete_old(const HeldDirectory& log_dir, int64_t saved_step, const CheckpointRetention& retention) {
  const auto entries = list_checkpoints(log_dir.path());
  const size_t newest = std::min<int64_t>(retention.keep_last, entries.size());
  for (size_t i = 0; i + newest < entries.size(); ++i) {
    const int64_t step = entries[i].step;
    if (step == saved_step || (retention.keep_every_steps > 0 && step % retention.keep_every_steps == 0))
      continue;
    // One that cannot be looked at may be kept, too.
    if (std::error_code failed; fs::exists(entries[i].path + "/" + kKeptFile, failed) || failed) continue;
    try {
      internal::delete_checkpoint(log_dir.path(), step);
    } catch (const IoError& error) {
      log_warning(log_dir.named(fmt::format("an old checkpoint could not be deleted: {}", error.what())));
    }
  }
}

// Tells whether a path still means the directory that it meant before; 0 if there is none.
ino_t directory_identity(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

Checkpoint load_directory(const std::string& directory) {
  const std::string state_path = directory + "/" + kStateFile;
  std::error_code ignored;
  if (const uintmax_t bytes = fs::file_size(state_path, ignored); !ignored && bytes > kMaxStateBytes)
    throw DataError(fmt::format("'{}' is damaged: it has {} bytes", state_path, bytes));
  StateFile state = internal::decode_state_file(read_file(state_path), state_path);

  Checkpoint checkpoint;
  checkpoint.global_step = state.global_step;
  checkpoint.state = std::move(state.state);
  const auto named = internal::parse_checkpoint_name(fs::path(directory).filename().string());
  if (named && named->step != state.global_step)
    throw DataError(fmt::format("'{}' says that it is of step {}, the directory's name says {}", state_path,
                                state.global_step, named->step));
  for (auto [name, arrays] : {std::pair{kVariablesFile, &checkpoint.variables},
                              std::pair{kOptimizerFile, &checkpoint.optimizer_slots}}) {
    const std::string path = directory + "/" + name;
    SafetensorsFile file = read_safetensors(path);
    const auto expected = state.files.find(name);
    if (expected == state.files.end())
      throw DataError(fmt::format("'{}' does not list '{}'", state_path, name));
    if (!file.checksummed || file.stamp != expected->second)
      throw DataError(fmt::format("'{}' is intact by itself, but it is not the file that '{}' was saved with",
                                  path, state_path));
    *arrays = std::move(file.tensors);
  }
  return checkpoint;
}

// Nothing, and `problem` set, if something is wrong with the checkpoint.
std::optional<Checkpoint> try_load(const std::string& directory, std::string* problem) {
  try {
    return load_directory(directory);
  } catch (const DataError& error) {
    *problem = error.what();
  } catch (const NotFound& error) {
    *problem = fmt::format("a file is missing: {}", error.what());
  }
  return std::nullopt;
}

// How to go on when the checkpoint `directory` cannot be used.
std::string advice(const std::string& directory) {
  const auto named = internal::parse_checkpoint_name(fs::path(directory).filename().string());
  const std::string log_dir = fs::path(directory).parent_path().string();
  const std::string retry = fmt::format("remove or move away '{}' and run again", directory);
  if (!named) return "Restore it from a copy, or use another checkpoint.";
  auto entries = list_checkpoints(log_dir.empty() ? "." : log_dir);
  std::reverse(entries.begin(), entries.end());
  for (const CheckpointEntry& entry : entries) {
    if (entry.step >= named->step) continue;
    try {
      load_directory(entry.path);
    } catch (const Error&) {
      continue;
    }
    return fmt::format(
        "The newest older checkpoint that is intact is '{0}' (step {1}). To go on from it, {2}, or "
        "start in another log_dir with --checkpoint_path={0}.",
        entry.path, entry.step, retry);
  }
  return fmt::format(
      "There is no older checkpoint that is intact. Restore it from a copy; to start anew, {}.", retry);
}

// What `find` finds, and where in `*directory`; nothing if it finds nothing.
std::optional<Checkpoint> load_found(FunctionRef<std::optional<std::string>()> find, std::string* directory) {
  for (;;) {
    const std::optional<std::string> found = find();
    if (!found) return std::nullopt;
    const ino_t identity = directory_identity(*found);
    std::string problem;
    if (auto checkpoint = try_load(*found, &problem)) {
      if (directory) *directory = *found;
      return checkpoint;
    }
    // A run that saves may have deleted or replaced it meanwhile: read what is there now.
    const ino_t now = directory_identity(*found);
    if (now == 0 || now != identity) continue;
    throw DataError(
        fmt::format("the checkpoint '{}' cannot be used: {}. {}", *found, problem, advice(*found)));
  }
}

// Into the new directory `saving`, whatever has its name by then.
void write_files(const std::string& saving, const Checkpoint& checkpoint, StateFile state) {
  const HeldDirectory held(saving);
  try {
    state.files[kVariablesFile] = write_safetensors(held.file(kVariablesFile), checkpoint.variables);
    state.files[kOptimizerFile] = write_safetensors(held.file(kOptimizerFile), checkpoint.optimizer_slots);
    if (checkpoint.keep_for_good)
      write_file_atomically(held.file(kKeptFile), "No newer checkpoint takes the place of this one.\n");
    write_file_atomically(held.file(kStateFile), internal::encode_state_file(state));
  } catch (const IoError& error) {
    held.throw_named(error);
  }
}

// What `change` does to a log_dir, locked and held by itself, so that nothing that is put into its place
// meanwhile is changed.
void change_directory(const std::string& log_dir, DirectoryLink link,
                      FunctionRef<void(const HeldDirectory&)> change) {
  make_directories(log_dir);
  const HeldDirectory held(log_dir, link);
  try {
    const internal::DirectoryLock lock(held);
    change(held);
  } catch (const IoError& error) {
    held.throw_named(error);
  }
}

}  // namespace

namespace internal {

std::string save_checkpoint(const std::string& log_dir, const Checkpoint& checkpoint,
                            const CheckpointRetention& retention, DirectoryLink link) {
  require_on_this_machine(log_dir);
  if (checkpoint.global_step < 0 || retention.keep_last < 1 || retention.keep_every_steps < 0)
    throw InvalidArgument(
        fmt::format("a checkpoint needs global_step >= 0, keep_last >= 1 and keep_every_steps >= 0; "
                    "given are {}, {} and {}",
                    checkpoint.global_step, retention.keep_last, retention.keep_every_steps));
  try {
    change_directory(log_dir, link, [&](const HeldDirectory& held) {
      remove_leftovers(held.path());
      const std::string saving = held.file(saving_name(checkpoint.global_step));
      try {
        make_fresh_directory(saving);
        write_files(saving, checkpoint,
                    {.global_step = checkpoint.global_step, .files = {}, .state = checkpoint.state});
        sync_directory(saving);
        publish_checkpoint(held.path(), checkpoint.global_step);
      } catch (...) {
        std::error_code ignored;
        fs::remove_all(saving, ignored);
        throw;
      }
      delete_old(held, checkpoint.global_step, retention);
    });
  } catch (const IoError& error) {
    throw IoError(
        fmt::format("the checkpoint of step {} could not be saved in '{}': {}. The checkpoints that were "
                    "there are untouched; make room or make the directory writable, and run again to go on "
                    "from the latest.",
                    checkpoint.global_step, log_dir, error.what()));
  }
  return log_dir + "/" + checkpoint_name(checkpoint.global_step);
}

void prepare_checkpoint_directory(const std::string& log_dir, DirectoryLink link) {
  require_on_this_machine(log_dir);
  try {
    change_directory(log_dir, link, [](const HeldDirectory& held) {
      remove_leftovers(held.path());
      const std::string probe = held.file(saving_name(0));
      make_fresh_directory(probe);
      std::error_code ignored;
      fs::remove(probe, ignored);
    });
  } catch (const IoError& error) {
    throw_alike(error, fmt::format("checkpoints cannot be saved in '{}': {}. Make the directory writable or "
                                   "choose another log_dir.",
                                   log_dir, error.what()));
  }
}

}  // namespace internal

std::string save_checkpoint(const std::string& log_dir, const Checkpoint& checkpoint,
                            const CheckpointRetention& retention) {
  return internal::save_checkpoint(log_dir, checkpoint, retention, DirectoryLink::kFollowed);
}

void prepare_checkpoint_directory(const std::string& log_dir) {
  internal::prepare_checkpoint_directory(log_dir, DirectoryLink::kFollowed);
}

std::vector<CheckpointEntry> list_checkpoints(const std::string& log_dir) {
  internal::require_on_this_machine(log_dir);
  // Reading a directory while a run publishes a checkpoint and deletes the one before it may show
  // neither of them.
  constexpr int kAttempts = 3;
  std::vector<CheckpointEntry> entries;
  for (int attempt = 0; entries.empty() && attempt < kAttempts; ++attempt) entries = list_once(log_dir);
  return entries;
}

std::optional<std::string> latest_checkpoint(const std::string& log_dir) {
  const auto entries = list_checkpoints(log_dir);
  if (entries.empty()) return std::nullopt;
  return entries.back().path;
}

std::string resolve_checkpoint(const std::string& path) {
  internal::require_on_this_machine(path);
  std::string directory = fs::path(path).lexically_normal().string();
  if (directory.size() > 1 && directory.ends_with('/')) directory.pop_back();
  std::error_code error;
  const fs::file_status status = fs::status(directory, error);
  if (status.type() == fs::file_type::not_found)
    throw NotFound(fmt::format("no checkpoint '{}': there is no such directory", path));
  if (!fs::is_directory(status))
    throw NotFound(
        fmt::format("no checkpoint '{}': it is not a directory. Give a checkpoint-<step> directory, or the "
                    "log_dir that holds them.",
                    path));
  if (internal::parse_checkpoint_name(fs::path(directory).filename().string())) return directory;
  for (const char* name : {kStateFile, kVariablesFile, kOptimizerFile})
    if (fs::exists(directory + "/" + name, error)) return directory;
  if (auto latest = latest_checkpoint(directory)) return *latest;
  throw NotFound(fmt::format(
      "no checkpoint in '{}': it is neither one nor does it hold a checkpoint-<step> directory", path));
}

Checkpoint load_checkpoint(const std::string& path, std::string* directory) {
  return *load_found([&]() -> std::optional<std::string> { return resolve_checkpoint(path); }, directory);
}

std::optional<Checkpoint> load_latest_checkpoint(const std::string& log_dir, std::string* directory) {
  return load_found([&] { return latest_checkpoint(log_dir); }, directory);
}

std::string arrays_digest(std::span<const NamedArray> arrays) {
  std::vector<const NamedArray*> order;
  for (const NamedArray& array : arrays) order.push_back(&array);
  std::sort(order.begin(), order.end(),
            [](const NamedArray* a, const NamedArray* b) { return a->name < b->name; });
  Sha256 digest;
  for (const NamedArray* array : order) {
    // The name's length in front, so that no two lists of arrays give the same stream.
    digest.update(fmt::format("{} {} {}\n", array->name.size(), array->name, to_string(array->value.type())));
    digest.update(array->value.as_bytes());
  }
  return digest.hex();
}

std::string checkpoint_digest(const std::string& path) {
  return arrays_digest(load_checkpoint(path).variables);
}

}  // namespace mox
