// Directories that others may write to: whatever they have put there before, and change meanwhile, what a run
// writes and reads there touches no file outside, writes down nothing of one, and waits for nothing that does
// not come.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "moxing/boost/snapshots.h"
#include "moxing/checkpoint/best_checkpoint.h"
#include "moxing/checkpoint/checkpoint.h"
#include "moxing/checkpoint/internal/checkpoint_directory.h"
#include "moxing/engine/session/internal/results_file.h"
#include "moxing/engine/session/internal/run_lock.h"
#include "moxing/file/copy.h"
#include "moxing/file/file.h"
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
#include "runtime/data/pipeline.h"
#include "tests/moxing/strangers/hostile_layout.h"
#include "tests/support/temporary_directory.h"

namespace mox {
namespace {

constexpr int kLayouts = 100;          // MOX_HOSTILE_LAYOUTS=10000 for more
constexpr unsigned kMostSeconds = 60;  // of one layout, on a busy machine

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

// Trees that are copied there, and removed. What was refused may go well another time.
void use_as_trees(const std::string& source, const std::string& directory) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    refused_or_done([&] { file::copy_parallel(source, directory, {.threads = 2}); });
    refused_or_done([&] {
      file::copy_parallel(source, directory, {.file_list = {"best/checkpoint-1", "place/deep/.stored"}});
    });
    for (const char* name : {"checkpoint-1", "best", "place", "copied"})
      refused_or_done([&] { file::remove(directory + "/" + name, true); });
    refused_or_done([&] { file::sync(source, directory, true, {.threads = 2}); });
  }
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

void try_layouts(void (*use)(const HostileLayout&)) {
  const char* asked = std::getenv("MOX_HOSTILE_LAYOUTS");
  const int layouts = asked ? std::atoi(asked) : kLayouts;
  const TemporaryDirectory directory;
  for (int seed = 0; seed < layouts; ++seed) {
    HostileLayout layout(fs::path(directory.path()) / "layout", static_cast<uint64_t>(seed));
    SCOPED_TRACE("seed " + std::to_string(seed) + ":" + layout.text());
    const auto before = layout.seen();
    // In every second layout somebody goes on meddling.
    const pid_t stranger = seed % 2 == 0 ? -1 : forked([&] { layout.meddle(); });
    const pid_t run = forked([&] { use(layout); });
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
    if (testing::Test::HasFailure()) return;
  }
}

TEST(HostileLayouts, TouchNothingOutsideAndEnd) {
  try_layouts([](const HostileLayout& layout) { use(layout.inside()); });
}

TEST(HostileLayouts, OfTreesThatAreCopiedAndRemovedTouchNothingOutside) {
  try_layouts(
      [](const HostileLayout& layout) { use_as_trees(layout.source().string(), layout.inside().string()); });
}

}  // namespace
}  // namespace mox
