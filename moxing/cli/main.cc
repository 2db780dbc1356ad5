// mox: looks into what a training run leaves on disk, converts data, and launches jobs.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <cstdio>
#include <exception>
#include <memory>

#include "moxing/cli/internal/command.h"
#include "moxing/cli/internal/help_formatter.h"
#include "moxing/cli/internal/mistake.h"
#include "moxing/cli/internal/words.h"
#include "moxing/file/masked_address.h"
#include "runtime/base/version.h"
#include "runtime/job/job.h"
#include "runtime/text/printable.h"

int main(int argc, char** argv) {
  CLI::App app(
      "mox: inspects what moxing runs leave on disk, converts data, and launches jobs of several processes",
      "mox");
  app.formatter(std::make_shared<mox::cli::HelpFormatter>());  // of the commands below, too
  app.set_version_flag("--version", fmt::format("mox (moxing {})", mox::version()),
                       "Print the version and exit");
  // One --help that shows everything below, also of nested subcommands.
  app.set_help_flag();
  app.set_help_all_flag("-h,--help", "Print this help and exit");
  app.require_subcommand(1);
  mox::cli::add_checkpoint(app);
  mox::cli::add_import(app);
  mox::cli::add_export_torch(app);
  mox::cli::add_convert(app);
  mox::cli::add_file(app);
  mox::cli::add_forecast(app);
  mox::cli::add_help(app);
  mox::cli::add_completion(app);
  int exit_status = 0;
  mox::cli::add_launch(app, &exit_status);
  mox::cli::take_off_marks(app);

  try {
    app.parse(mox::cli::marked_words(argc, argv));
    if (std::fflush(stdout) != 0) throw std::runtime_error("the output could not be written");
    return exit_status;
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    // Not fmt::print, which throws where nobody reads any more.
    std::fputs(mox::cli::mistake(app, mox::file::masked_address(error.what())).c_str(), stderr);
    return mox::internal::kValueRefused;
  } catch (const std::exception& error) {
    std::fputs(fmt::format("mox: {}\n", mox::printable_message(error.what())).c_str(), stderr);
    return mox::internal::exit_status_of(error);
  }
}
