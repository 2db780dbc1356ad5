// mox checkpoint list: the checkpoints of a log_dir.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "moxing/checkpoint/checkpoint.h"
#include "moxing/cli/internal/command.h"
#include "moxing/file/file.h"
#include "runtime/base/error.h"
#include "runtime/text/printable.h"

namespace mox::cli {
namespace {

namespace fs = std::filesystem;

// Of the files in a checkpoint, "?" where they cannot all be listed.
std::string bytes_of_files(const std::string& directory) {
  uintmax_t bytes = 0;
  std::error_code failed;
  for (fs::directory_iterator it(directory, failed), end; it != end; it.increment(failed)) {
    std::error_code error;  // a file may go away while we look
    const uintmax_t size = it->file_size(error);
    if (!error) bytes += size;
  }
  return failed ? "?" : std::to_string(bytes);
}

// Those that are complete: the manifest comes last.
void list_remote(const std::string& url) {
  std::map<int64_t, std::string> complete;
  std::map<std::string, int64_t> bytes;
  for (const file::DirectoryEntry& entry : file::scan_dir(url, {.recursive = true, .skip_dir = true})) {
    const std::string name = entry.name.substr(0, entry.name.find('/'));
    bytes[name] += entry.stat.length;
    long long step = 0;
    if (entry.name == name + "/state.json" && std::sscanf(name.c_str(), "checkpoint-%lld", &step) == 1)
      complete[step] = name;
  }
  if (complete.empty()) throw NotFound(fmt::format("no checkpoint in '{}'", url));
  fmt::print("{:>12}  {:>14}  {}\n", "step", "bytes", "path");
  for (const auto& [step, checkpoint] : complete)
    fmt::print("{:>12}  {:>14}  {}{}{}\n", step, bytes[checkpoint], printable(url),
               url.ends_with('/') ? "" : "/", printable(checkpoint));
}

}  // namespace

void add_checkpoint_list(CLI::App& checkpoint) {
  CLI::App* command =
      checkpoint.add_subcommand("list", "List the checkpoints of a log_dir: step, bytes, path");
  auto path = std::make_shared<std::string>();
  command->add_option("DIR", *path, "A log_dir")->required();
  command->callback([path] {
    if (file::is_remote(*path)) return list_remote(*path);
    const auto entries = list_checkpoints(*path);
    if (entries.empty()) throw NotFound(fmt::format("no checkpoint in '{}'", *path));
    fmt::print("{:>12}  {:>14}  {}\n", "step", "bytes", "path");
    for (const CheckpointEntry& entry : entries)
      fmt::print("{:>12}  {:>14}  {}\n", entry.step, bytes_of_files(entry.path), printable(entry.path));
  });
}

}  // namespace mox::cli
