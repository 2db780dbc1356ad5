// mox file: files on local disks and in object stores.
#include "moxing/file/file.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "moxing/cli/internal/command.h"
#include "moxing/cli/internal/file_options.h"
#include "moxing/cli/internal/words.h"
#include "moxing/file/open_file.h"
#include "moxing/file/s3/store_error.h"
#include "runtime/base/error.h"
#include "runtime/text/printable.h"
#include "runtime/text/utf8.h"

namespace mox::cli {
namespace {

std::string utc_time(std::chrono::system_clock::time_point time) {
  if (time == std::chrono::system_clock::time_point{}) return "-";
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(time)));
}

// Names are bytes; JSON is UTF-8: bytes that are none are shown as on a terminal, so that different names
// stay different. In ASCII alone, as a terminal would obey some of the other characters.
std::string one_line(nlohmann::ordered_json object) {
  for (auto& value : object)
    if (value.is_string() && !is_utf8(value.get_ref<const std::string&>()))
      value = printable(value.get_ref<const std::string&>());
  return object.dump(-1, ' ', true);
}

nlohmann::ordered_json json_of(const file::Stat& stat, const std::string& url) {
  nlohmann::ordered_json object{{"url", url}, {"directory", stat.is_directory}, {"bytes", stat.length}};
  if (stat.mtime != std::chrono::system_clock::time_point{}) object["modified"] = utc_time(stat.mtime);
  if (!stat.etag.empty()) object["etag"] = stat.etag;
  return object;
}

// A terminal obeys what a name has of control characters; programs are given names as they are.
std::string for_output(const std::string& name) {
  static const bool is_terminal = ::isatty(STDOUT_FILENO);
  return is_terminal ? printable(name) : name;
}

void print_entry(const file::Stat& stat, const std::string& name, const std::string& url, bool details,
                 bool json) {
  // A URL of a directory may have its slash already.
  const bool lacks_slash = stat.is_directory && !(name == url && url.ends_with('/'));
  if (json)
    fmt::print("{}\n", one_line(json_of(stat, url)));
  else if (details)
    fmt::print("{:>14}  {:>20}  {}{}\n", stat.is_directory ? "-" : std::to_string(stat.length),
               utc_time(stat.mtime), for_output(name), lacks_slash ? "/" : "");
  else
    fmt::print("{}{}\n", for_output(name), lacks_slash ? "/" : "");
}

std::string hint_of_pattern(const std::string& url) {
  return url.find_first_of("*?[") == std::string::npos ? "" : " (`mox file ls` alone takes patterns)";
}

bool ends_all(const IoError& error) {
  if (dynamic_cast<const file::s3::Cancelled*>(&error)) return true;
  const auto* of_store = dynamic_cast<const file::s3::StoreError*>(&error);
  return of_store && file::s3::is_away(*of_store);
}

// Does it for each, also after one that is not there or that it cannot be done to; the error at the end names
// all of those. A store that is away is not the matter of one name, and would be waited for as often as there
// are names.
template <typename Do>
void for_each_of(const std::vector<std::string>& urls, Do&& do_it) {
  std::string text;
  bool has_failed = false;  // at what may go well another time, and not only refused names
  const auto add = [&](const std::string& what) { text += (text.empty() ? "" : "\n") + what; };
  for (size_t i = 0; i < urls.size(); ++i) {
    try {
      do_it(urls[i]);
    } catch (const NotFound& error) {
      add(error.what() + hint_of_pattern(urls[i]));
    } catch (const InvalidArgument& error) {
      add(error.what());
    } catch (const FailedPrecondition& error) {  // a directory where a file is needed, a whole bucket
      add(error.what());
    } catch (const IoError& error) {
      add(error.what());
      has_failed = true;
      if (!ends_all(error)) continue;
      if (i + 1 < urls.size()) add(fmt::format("{} more were not tried", urls.size() - i - 1));
      break;
    }
  }
  if (has_failed) throw IoError(text);
  if (!text.empty()) throw InvalidArgument(text);
}

struct Listed {
  std::string url;
  bool recursive = false, details = false, json = false;
};

void add_ls(CLI::App& parent) {
  CLI::App* command = parent.add_subcommand("ls", "List a directory, or what matches a pattern");
  auto options = std::make_shared<Listed>();
  command->add_option("URL", options->url, "A directory, a file, or a pattern (*, ?, [a-z], **)")->required();
  command->add_flag("-r,--recursive", options->recursive, "And all below it");
  command->add_flag("-l,--long", options->details, "Bytes and time, too");
  command->add_flag("--json", options->json, "One JSON object a line");
  command->callback([options] {
    if (!file::exists(options->url)) {
      const std::vector<std::string> found = file::glob(options->url);
      if (found.empty()) file::stat(options->url);  // says what is not there
      return for_each_of(found, [&](const std::string& url) {
        print_entry(file::stat(url), url, url, options->details, options->json);
      });
    }
    if (!file::is_directory(options->url))
      return print_entry(file::stat(options->url), options->url, options->url, options->details,
                         options->json);
    for (const file::DirectoryEntry& entry : file::scan_dir(options->url, {.recursive = options->recursive}))
      print_entry(entry.stat, entry.name.empty() ? entry.url : entry.name, entry.url, options->details,
                  options->json);
  });
}

void add_cat(CLI::App& parent) {
  CLI::App* command = parent.add_subcommand("cat", "Print files");
  auto urls = std::make_shared<std::vector<std::string>>();
  add_words(*command, "URL", urls.get(), "Files")->required();
  command->callback([urls] {
    for_each_of(*urls, [](const std::string& url) {
      file::File file(url, "rb");
      for (std::string piece; !(piece = file.read(1 << 20)).empty();)
        if (std::fwrite(piece.data(), 1, piece.size(), stdout) != piece.size())
          throw std::runtime_error("the output could not be written");
    });
  });
}

void add_stat(CLI::App& parent) {
  CLI::App* command = parent.add_subcommand("stat", "What is known of a file or a directory");
  auto options = std::make_shared<Listed>();
  command->add_option("URL", options->url, "A file or a directory")->required();
  command->add_flag("--json", options->json, "One JSON object");
  command->callback([options] {
    const file::Stat stat = file::stat(options->url);
    if (options->json) {
      fmt::print("{}\n", one_line(json_of(stat, options->url)));
      return;
    }
    fmt::print("{}: {}\n", for_output(options->url),
               stat.is_directory ? "a directory" : fmt::format("a file of {} bytes", stat.length));
    fmt::print("  modified {}\n", utc_time(stat.mtime));
    if (!stat.etag.empty()) fmt::print("  etag     {}\n", printable(stat.etag));
  });
}

void add_du(CLI::App& parent) {
  CLI::App* command = parent.add_subcommand("du", "Bytes and number of the files below a directory");
  auto options = std::make_shared<Listed>();
  command->add_option("URL", options->url, "A file or a directory")->required();
  command->add_flag("--json", options->json, "One JSON object");
  command->callback([options] {
    int64_t files = 0, bytes = 0;
    const file::Stat stat = file::stat(options->url);
    if (file::is_directory(options->url)) {  // even if a store has a file of this name, too
      for (const file::DirectoryEntry& entry :
           file::scan_dir(options->url, {.recursive = true, .skip_dir = true})) {
        ++files;
        bytes += entry.stat.length;
      }
    } else {
      files = 1;
      bytes = stat.length;
    }
    if (options->json)
      fmt::print("{}\n", one_line({{"url", options->url}, {"files", files}, {"bytes", bytes}}));
    else
      fmt::print("{} bytes in {} {}\n", bytes, files, files == 1 ? "file" : "files");
  });
}

void add_rm(CLI::App& parent) {
  CLI::App* command = parent.add_subcommand("rm", "Remove files, or directories with all below them");
  auto urls = std::make_shared<std::vector<std::string>>();
  auto recursive = std::make_shared<bool>(false);
  add_words(*command, "URL", urls.get(), "What is removed")->required();
  command->add_flag("-r,--recursive", *recursive, "Directories with all below them");
  command->callback([urls, recursive] {
    for_each_of(*urls, [&](const std::string& url) { file::remove(url, *recursive); });
  });
}

}  // namespace

void add_file(CLI::App& mox) {
  CLI::App* file = mox.add_subcommand(
      "file", "Files on local disks and in object stores (s3://, obs://): ls, cp, sync ...");
  file->require_subcommand(1);
  add_store_options(*file);
  add_ls(*file);
  add_cat(*file);
  add_stat(*file);
  add_du(*file);
  add_rm(*file);
  add_file_copies(*file);
}

}  // namespace mox::cli
