// Directories that others may write to, drawn by chance: links, FIFOs, sockets, devices, second names and
// files of other users in the places of what a run writes, keeps, copies and reads.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "runtime/base/opened_file.h"
#include "runtime/base/random.h"
#include "tests/moxing/image/images.h"

namespace mox {

namespace fs = std::filesystem;

// What a run, a cache and a data set call their files.
inline const std::vector<std::string> kNames = {".lock",
                                                ".save-lock",
                                                "metrics.jsonl",
                                                "configuration.yaml",
                                                "results.json",
                                                "checkpoint-1",
                                                "checkpoint-1/state.json",
                                                "checkpoint-1/variables.safetensors",
                                                "checkpoint-1.saving",
                                                "checkpoint-1.saving/state.json",
                                                "checkpoint-1.deleting",
                                                "checkpoint-1.previous",
                                                "checkpoint-2",
                                                "checkpoint-2.saving",
                                                "best",
                                                "best/checkpoint-1",
                                                "snapshots",
                                                "snapshots/snapshot-1.safetensors",
                                                "copy-1",
                                                "copy-1/images.bin",
                                                "copy-1/manifest.txt",
                                                "copy-1/.lock",
                                                "records",
                                                "records.mox-index",
                                                "images.idx",
                                                "numbers.csv",
                                                "table.csv",
                                                "labels.txt",
                                                "list.txt",
                                                "pictures",
                                                "pictures/a.png",
                                                "pictures/b.png",
                                                "copied",
                                                "copied.moxing.part",
                                                "copied.moxing.part.journal",
                                                "place",
                                                "place/.lock",
                                                "place/.stored",
                                                "place/.stored-files",
                                                "place.lock",
                                                "place.in-use",
                                                "place.complete"};

// What files outside hold: JSON, with which a run might go on.
inline constexpr const char* kOutside =
    R"({"step": 1, "evaluation": true, "loss": 0.5, "untouched": "a secret"})"
    "\n";

inline constexpr const char* kCopied =
    "what an object holds";  // of a copy under way, which begins with a source

// What is there if nobody means harm, so that what comes behind reading it is tried, too.
inline std::string plausible_content(const std::string& name) {
  static const std::string png = image::encode_png(image::picture(8, 8));
  if (name.ends_with(".png")) return png;
  if (name.ends_with("numbers.csv")) return "1,2\n3,4\n";
  if (name.ends_with("table.csv")) return "a,b\n1,x\n2,y\n";
  if (name.ends_with("labels.txt")) return "0: a\n1: b\n";
  if (name.ends_with("list.txt")) return "pictures/a.png\nnumbers.csv\n";
  if (name.ends_with(".part")) return kCopied;
  if (name.ends_with(".journal")) return "etag\n0 " + std::string(32, 'a') + "\n";
  if (name.ends_with(".stored")) return "checkpoint-1 " + std::string(64, 'a') + "\n";
  if (name.ends_with(".stored-files")) return "etag 1 1764340000000000000 metrics.jsonl\n";
  if (name.ends_with("results.json")) return R"({"predict": {"samples": 1}})";
  return "";
}

// One layout, drawn from a seed: `inside` is the directory that others may write to.
class HostileLayout {
 public:
  HostileLayout(fs::path top, uint64_t seed)
      : top_(std::move(top)), random_(seed, stable_hash("hostile layout")) {
    fs::remove_all(top_);
    fs::create_directories(inside());
    // Another run, too, which saving, deleting and cleaning up would change.
    for (const char* name : {"folder/checkpoint-7", "folder/checkpoint-3.saving"})
      fs::create_directories(outside() / name);
    for (const char* name : {"secret", "folder/deep", "folder/checkpoint-7/state.json",
                             "folder/checkpoint-3.saving/state.json", "folder/snapshot-1.safetensors"})
      std::ofstream(outside() / name) << kOutside;
    for (const char* name : {"checkpoint-1/state.json", "best/checkpoint-1", "snapshots/secret",
                             "place/deep/.stored", "copied/secret"}) {
      fs::create_directories((source() / name).parent_path());
      std::ofstream(source() / name) << name;
    }
    const uint64_t entries = 1 + draw(12);
    for (uint64_t i = 0; i < entries; ++i) put(kNames[draw(kNames.size())], draw(kKinds));
  }
  ~HostileLayout() {
    std::error_code error;
    fs::remove_all(top_, error);
  }
  HostileLayout(const HostileLayout&) = delete;
  HostileLayout& operator=(const HostileLayout&) = delete;

  fs::path inside() const { return top_ / "inside"; }
  fs::path outside() const { return top_ / "outside"; }
  // A tree that nobody meddles with, with files in the places of what is inside.
  fs::path source() const { return top_ / "source"; }
  const std::string& text() const { return text_; }

  // The files inside that hold something of those outside, but for those that are links to them.
  std::string told() const {
    std::string names;
    std::error_code error;
    for (const auto& entry : fs::recursive_directory_iterator(inside(), error)) {
      if (entry.is_symlink(error) || !entry.is_regular_file(error) || entry.hard_link_count(error) > 1)
        continue;
      std::ifstream file(entry.path(), std::ios::binary);
      if (std::string(std::istreambuf_iterator<char>(file), {}).find("a secret") != std::string::npos)
        names += entry.path().string() + " ";
    }
    return names;
  }

  // Every name outside, with what it is and holds.
  std::map<std::string, std::string> seen() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(outside())) {
      std::string content = entry.is_regular_file() ? "" : "folder";
      if (entry.is_regular_file()) {
        std::ifstream file(entry.path(), std::ios::binary);
        content.assign(std::istreambuf_iterator<char>(file), {});
      }
      struct stat status {};
      ::lstat(entry.path().c_str(), &status);
      all[entry.path().string()] =
          content + " " + std::to_string(status.st_mode) + " " + std::to_string(status.st_uid);
    }
    return all;
  }

  // What a second process does until it is ended.
  [[noreturn]] void meddle() {
    for (;;) {
      put(kNames[draw(kNames.size())], draw(kKinds));
      ::usleep(static_cast<useconds_t>(draw(400)));
    }
  }

 private:
  static constexpr uint64_t kKinds = 13;
  uint64_t draw(uint64_t bound) { return random_.below(position_++, bound); }

  void put(const std::string& name, uint64_t kind) {
    std::error_code error;
    // Below a directory that is held: else a run that renames one meanwhile, or a link of our own, could make
    // it us who touch what is outside.
    const fs::path parent = fs::path(name).parent_path();
    const FileDescriptor top(::open(inside().c_str(), O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (!parent.empty()) ::mkdirat(top.get(), parent.c_str(), 0755);
    const FileDescriptor held(
        parent.empty() ? ::dup(top.get())
                       : ::openat(top.get(), parent.c_str(), O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (held.get() < 0) return;
    const fs::path at = fs::path("/proc/self/fd/" + std::to_string(held.get())) / fs::path(name).filename();
    fs::remove_all(at, error);
    text_ += " " + name + ":" + std::to_string(kind);
    switch (kind) {
      case 0:
        fs::create_symlink(outside() / "secret", at, error);
        break;
      case 1:
        fs::create_directory_symlink(outside() / "folder", at, error);
        break;
      case 2:
        fs::create_symlink(outside() / "new", at, error);  // of a file that a writer would make
        break;
      case 3:
        fs::create_symlink(at.filename(), at, error);  // of itself
        break;
      case 4:
        ::mkfifo(at.c_str(), 0666);
        break;
      case 5: {
        const int server = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        at.string().copy(address.sun_path, sizeof address.sun_path - 1);
        if (server >= 0) {
          (void)::bind(server, reinterpret_cast<const sockaddr*>(&address), sizeof address);
          ::close(server);
        }
        break;
      }
      case 6:
        ::mknod(at.c_str(), S_IFCHR | 0666, makedev(1, 5));  // /dev/zero, which never ends
        break;
      case 7:
        fs::create_directory(at, error);
        break;
      case 8:
        write_new(at, std::string(draw(100), static_cast<char>(draw(256))));
        break;
      case 9:
        fs::create_hard_link(outside() / "secret", at, error);
        break;
      case 10:
        write_new(at, "of another user");
        if (::lchown(at.c_str(), 65534, 65534) != 0) break;
        fs::permissions(at, fs::perms::none, fs::perm_options::replace | fs::perm_options::nofollow, error);
        break;
      case 11:
        write_new(at, plausible_content(name));
        break;
      default:
        fs::create_symlink("/proc/self/mem", at, error);
    }
  }

  static void write_new(const fs::path& at, const std::string& content) {
    const FileDescriptor file(::open(at.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (file.get() >= 0 && ::write(file.get(), content.data(), content.size()) < 0) std::perror("write");
  }

  fs::path top_;
  RandomStream random_;
  uint64_t position_ = 0;
  std::string text_;
};

}  // namespace mox
