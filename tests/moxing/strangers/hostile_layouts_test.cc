// Directories that others may write to: whatever they have put there before, and change meanwhile, what a run
// writes and reads there touches no file outside, writes down nothing of one, and waits for nothing that does
// not come.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "moxing/boost/snapshots.h"
#include "moxing/checkpoint/best_checkpoint.h"
#include "moxing/checkpoint/checkpoint.h"
#include "moxing/checkpoint/internal/checkpoint_directory.h"
#include "moxing/engine/session/internal/results_file.h"
#include "moxing/engine/session/internal/run_lock.h"
#include "moxing/file/internal/part_file.h"
#include "moxing/file/jobs/internal/known_manifests.h"
#include "moxing/file/jobs/internal/place.h"
#include "moxing/file/jobs/internal/stored_files.h"
#include "moxing/file/s3/digest.h"
#include "moxing/formats/csv.h"
#include "moxing/formats/csv_table.h"
#include "moxing/formats/idx_dataset.h"
#include "moxing/formats/tfrecord.h"
#include "moxing/hooks/internal/metrics_log.h"
#include "moxing/image_sets/image_files.h"
#include "moxing/image_sets/internal/kept_images.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/opened_file.h"
#include "runtime/base/random.h"
#include "runtime/data/pipeline.h"
#include "tests/moxing/image/images.h"
#include "tests/support/temporary_directory.h"

namespace mox {
namespace {

namespace fs = std::filesystem;

constexpr int kLayouts = 100;          // MOX_HOSTILE_LAYOUTS=10000 for more
constexpr unsigned kMostSeconds = 60;  // of one layout, on a busy machine

// What a run, a cache and a data set call their files.
const std::vector<std::string> kNames = {".lock",
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
constexpr const char* kOutside = R"({"step": 1, "evaluation": true, "loss": 0.5, "untouched": "a secret"})"
                                 "\n";

constexpr const char* kCopied = "what an object holds";  // of a copy under way, which begins with a source

// What is there if nobody means harm, so that what comes behind reading it is tried, too.
std::string plausible_content(const std::string& name) {
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
class Layout {
 public:
  Layout(fs::path top, uint64_t seed) : top_(std::move(top)), random_(seed, stable_hash("hostile layout")) {
    fs::remove_all(top_);
    fs::create_directories(inside());
    // Another run, too, which saving, deleting and cleaning up would change.
    for (const char* name : {"folder/checkpoint-7", "folder/checkpoint-3.saving"})
      fs::create_directories(outside() / name);
    for (const char* name : {"secret", "folder/deep", "folder/checkpoint-7/state.json",
                             "folder/checkpoint-3.saving/state.json", "folder/snapshot-1.safetensors"})
      std::ofstream(outside() / name) << kOutside;
    const uint64_t entries = 1 + draw(12);
    for (uint64_t i = 0; i < entries; ++i) put(kNames[draw(kNames.size())], draw(kKinds));
  }
  ~Layout() {
    std::error_code error;
    fs::remove_all(top_, error);
  }
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;

  fs::path inside() const { return top_ / "inside"; }
  fs::path outside() const { return top_ / "outside"; }
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

template <typename Work>
void refused_or_done(const Work& work) {
  try {
    work();
  } catch (const Error&) {
  }
}

// What a run writes in its log_dir.
void use_as_log_dir(const std::string& log_dir) {
  refused_or_done([&] { const internal::RunLock lock(log_dir); });
  refused_or_done([&] { prepare_checkpoint_directory(log_dir); });
  Checkpoint checkpoint;
  checkpoint.variables.push_back({"w", Array(DType::kFloat32, {4})});
  for (checkpoint.global_step = 1; checkpoint.global_step <= 2; ++checkpoint.global_step)
    refused_or_done([&] { save_checkpoint(log_dir, checkpoint, {.keep_last = 1}); });
  refused_or_done([&] { load_latest_checkpoint(log_dir); });
  // What it makes there by itself.
  const std::string best = best_directory(log_dir), snapshots = log_dir + "/snapshots";
  refused_or_done([&] { internal::prepare_checkpoint_directory(best, DirectoryLink::kRefused); });
  for (checkpoint.global_step = 1; checkpoint.global_step <= 2; ++checkpoint.global_step)
    refused_or_done(
        [&] { internal::save_checkpoint(best, checkpoint, {.keep_last = 1}, DirectoryLink::kRefused); });
  refused_or_done([&] { delete_checkpoints_but(best, 1); });
  refused_or_done([&] { boost::delete_snapshots_after(snapshots, 0, DirectoryLink::kRefused); });
  refused_or_done([&] {
    boost::write_snapshot(snapshots, 2, checkpoint.variables, {.keep = 1, .link = DirectoryLink::kRefused});
  });
  refused_or_done([&] {
    internal::MetricsLog log;
    log.open(log_dir + "/metrics.jsonl", 0);
    log.write({{"step", 1}});
  });
  refused_or_done([&] { write_file_atomically(log_dir + "/configuration.yaml", "written"); });
  refused_or_done([&] { internal::keep_results({.checkpoint = log_dir + "/checkpoint-2"}); });
}

// What it keeps of images, and what it reads as data.
void use_as_data(const std::string& directory) {
  refused_or_done([&] {
    const auto kept = data::internal::kept_in_directory(2, {.directory = directory, .identity = "images"});
    data::internal::KeptImage image;
    image.encoded = {1, 2, 3};
    kept->keep(0, image, {});
    std::vector<uint8_t> scratch;
    kept->find(0, [](int, int) { return image::Box{}; }, &scratch, {});
  });
  refused_or_done([&] { data::TfRecordFiles::open({directory + "/records"}); });
  refused_or_done([&] { data::read_idx(directory + "/images.idx"); });
  refused_or_done([&] { data::read_csv(directory + "/numbers.csv"); });
  refused_or_done([&] { data::read_csv_table(directory + "/table.csv"); });
  refused_or_done([&] { data::read_label_names(directory + "/labels.txt"); });
  for (const char* images : {"/pictures", "/pictures/a.png", "/list.txt"})
    refused_or_done([&] {
      const Dataset read = data::image_files(data::list_image_files(directory + images),
                                             {.augmentation = {.height = 4, .width = 4}});
      Pipeline pipeline(read.batch(1), {.threads = 1});
      for (Batch batch; pipeline.next(&batch);) {
      }
    });
}

// What it copies from a store, and the place of a run that lies in one.
void use_as_place(const std::string& directory) {
  for (int attempt = 0; attempt < 2; ++attempt)
    refused_or_done([&] {
      const std::string content = kCopied, path = directory + "/copied";
      file::internal::PartFile part(path, file::internal::part_name(path));
      part.begin("etag", std::ssize(content));
      if (part.recorded(0).empty()) part.write(content, 0);
      part.record(0, file::s3::md5(content));
      part.read(0, std::ssize(content));
      if (attempt == 1) part.publish(false);
    });
  const std::string place = directory + "/place";
  refused_or_done([&] {
    const file::internal::PlaceLock lock(place, directory);
    file::internal::PlaceUse use(place);
    if (use.try_alone()) write_file_atomically(place + ".complete", "written");
    use.share();
  });
  refused_or_done([&] {
    auto known = file::internal::read_known_manifests(place).value_or(file::internal::KnownManifests{});
    known["checkpoint-2"] = std::string(64, 'b');
    file::internal::write_known_manifests(place, known);
  });
  refused_or_done([&] {
    auto files = file::internal::read_stored_files(place);
    files["a"] = {"etag", file::internal::seen_at(place + "/.stored")};
    file::internal::write_stored_files(place, files);
  });
  refused_or_done([&] { file::internal::remove_place(place); });
}

// What a run does in its directories, one thing after the other, whether or not those before it were refused.
void use(const fs::path& directory) {
  use_as_log_dir(directory.string());
  use_as_data(directory.string());
  use_as_place(directory.string());
}

pid_t forked(const auto& work) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  // Warnings by the thousand go nowhere; descriptor 2 stays taken.
  if (const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC); nowhere >= 0)
    ::dup2(nowhere, STDERR_FILENO);
  ::alarm(kMostSeconds);
  try {
    work();
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());  // none of the framework's own
    std::fflush(stdout);
    ::_exit(3);
  }
  ::_exit(0);
}

TEST(HostileLayouts, TouchNothingOutsideAndEnd) {
  const char* asked = std::getenv("MOX_HOSTILE_LAYOUTS");
  const int layouts = asked ? std::atoi(asked) : kLayouts;
  const TemporaryDirectory directory;
  for (int seed = 0; seed < layouts; ++seed) {
    Layout layout(fs::path(directory.path()) / "layout", static_cast<uint64_t>(seed));
    SCOPED_TRACE("seed " + std::to_string(seed) + ":" + layout.text());
    const auto before = layout.seen();
    // In every second layout somebody goes on meddling.
    const pid_t stranger = seed % 2 == 0 ? -1 : forked([&] { layout.meddle(); });
    const pid_t run = forked([&] { use(layout.inside()); });
    int status = 0;
    ASSERT_EQ(::waitpid(run, &status, 0), run);
    if (stranger > 0) {
      EXPECT_EQ(::waitpid(stranger, nullptr, WNOHANG), 0) << "the stranger has ended by itself";
      ::kill(stranger, SIGKILL);
      ::waitpid(stranger, nullptr, 0);
    }
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
        << (WIFSIGNALED(status) ? "ended by signal " + std::to_string(WTERMSIG(status))
                                : "status " + std::to_string(WEXITSTATUS(status)));
    EXPECT_EQ(layout.seen(), before);
    EXPECT_EQ(layout.told(), "");
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace mox
