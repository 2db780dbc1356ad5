#include "moxing/console/wrapped_text.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace mox {
namespace {

constexpr size_t kUsualWidth = 80, kLeastWidth = 40, kMostWidth = 120;

// 0 if the environment names none.
size_t columns_of_environment() {
  const char* const given = std::getenv("COLUMNS");
  if (given == nullptr) return 0;
  const std::string_view text(given);
  size_t columns = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), columns);
  return error == std::errc() && rest == text.data() + text.size() ? columns : 0;
}

// 0 if standard output is none.
size_t columns_of_terminal() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

// Where the text of a line stands: "  --shards INT      Number of files" has two columns.
size_t text_column(std::string_view line) {
  const size_t start = std::min(line.find_first_not_of(' '), line.size());
  const size_t gap = line.find("  ", start);
  return gap == std::string_view::npos ? start : std::min(line.find_first_not_of(' ', gap), line.size());
}

}  // namespace

size_t text_width() {
  size_t columns = columns_of_environment();
  if (columns == 0) columns = columns_of_terminal();
  if (columns == 0) columns = kUsualWidth;
  return std::clamp(columns, kLeastWidth, kMostWidth);
}

std::string wrapped(std::string_view text, size_t indent, size_t width) {
  std::string lines(indent, ' ');
  size_t column = indent;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (column > indent && column + 1 + word.size() > width) {
      lines += "\n" + std::string(indent, ' ');
      column = indent;
    }
    if (column > indent) lines += ' ', ++column;
    lines += word;
    column += word.size();
  }
  return lines + "\n";
}

std::string wrapped_lines(std::string_view lines, size_t width) {
  std::string result;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    if (line.size() <= width) {
      result.append(line) += '\n';
      continue;
    }
    const size_t column = text_column(line);
    if (column <= width / 2) {
      std::string broken = wrapped(line.substr(column), column, width);
      result += broken.replace(0, column, line.substr(0, column));
      continue;
    }
    // The first column is too wide, or there is none and the text begins far to the right: it goes below, to
    // the left.
    const size_t start = line.find_first_not_of(' ');
    if (start == line.npos) {  // nothing but blanks
      result += '\n';
      continue;
    }
    const std::string_view name = line.substr(0, line.find_last_not_of(' ', column - 1) + 1);
    const bool has_name = column > start;
    if (has_name && name.size() <= width) {
      result.append(name) += '\n';
      result += wrapped(line.substr(column), std::min(start + 4, width / 4), width);
    } else {
      result += wrapped(line.substr(start), std::min(start, width / 4), width);
    }
  }
  return result;
}

}  // namespace mox
