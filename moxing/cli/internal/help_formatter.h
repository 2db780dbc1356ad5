// Help within the width of the terminal.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <string>

#include "moxing/console/wrapped_text.h"

namespace mox::cli {

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    return wrapped_lines(CLI::Formatter::make_help(app, std::move(name), mode), text_width());
  }
};

}  // namespace mox::cli
