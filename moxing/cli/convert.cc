// mox convert: an image folder as TFRecord files.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

#include "moxing/cli/internal/command.h"
#include "moxing/file/jobs/local_places.h"
#include "moxing/file/jobs/staging.h"
#include "moxing/image_sets/image_records.h"
#include "runtime/base/error.h"
#include "runtime/base/seconds.h"

namespace mox::cli {
namespace {

// A bar that is drawn anew on a terminal; a line now and then elsewhere.
class ProgressBar {
 public:
  void show(int64_t done, int64_t total) {
    const auto now = Clock::now();
    const auto pause = terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(10'000);
    if (done < total && now - last_ < pause) return;
    last_ = now;
    const double seconds = in_seconds(now - start_);
    const std::string numbers =
        fmt::format("{} of {} images, {:.0f} a second", done, total, static_cast<double>(done) / seconds);
    if (!terminal_) {
      std::fputs(fmt::format("{}\n", numbers).c_str(), stderr);
      return;
    }
    constexpr int kWidth = 40;
    const size_t filled = kWidth * done / total;
    std::fputs(fmt::format("\r[{:<40}] {} ", std::string(filled, '='), numbers).c_str(), stderr);
    if (done == total) std::fputs("\n", stderr);
  }

 private:
  using Clock = std::chrono::steady_clock;
  bool terminal_ = ::isatty(STDERR_FILENO) != 0;
  Clock::time_point start_ = Clock::now(), last_ = start_;
};

// The files would have no name but their numbers, by which no split is found.
void require_prefix(const std::string& prefix) {
  const std::string name = prefix.substr(prefix.rfind('/') + 1);
  if (!name.empty() && name != "." && name != "..") return;
  throw InvalidArgument(fmt::format(
      "PREFIX is '{}', a directory, and names no files: they are called PREFIX-00000-of-00001 and so on; write "
      "'{}{}train' for the split 'train'",
      prefix, prefix, name.empty() ? "" : "/"));
}

}  // namespace

void add_convert(CLI::App& mox) {
  CLI::App* command = mox.add_subcommand(
      "convert", "Write an image folder (a sub-directory for each class) as TFRecord files with labels.txt");
  struct Arguments {
    std::string folder, prefix;
    data::ConvertOptions options;
  };
  auto arguments = std::make_shared<Arguments>();
  command->add_option("FOLDER", arguments->folder, "The image folder")->required();
  command->add_option("PREFIX", arguments->prefix, "Files are called PREFIX-00000-of-00001 and so on")
      ->required();
  command->add_option("--shards", arguments->options.shards, "Number of files (default 1)");
  command->add_option("--seed", arguments->options.seed, "Of the order of the images (default 0)");
  command->callback([arguments] {
    require_prefix(arguments->prefix);
    ProgressBar bar;
    arguments->options.progress = [&bar](int64_t done, int64_t total) { bar.show(done, total); };
    const std::string places = file::places_directory("");
    file::Staging output(arguments->prefix, places);
    output.fetch("labels.txt");
    const file::DataInUse images(arguments->folder, places);
    const data::ImageClassificationRaw folder(images.path());
    const auto paths = data::convert_image_folder(folder, output.path(), arguments->options);
    output.send();
    fmt::print("{} images of {} classes in {} files: {}{} ...\n", folder.files().size(),
               folder.label_names().size(), paths.size(), arguments->prefix,
               paths.front().substr(output.path().size()));
  });
}

}  // namespace mox::cli
