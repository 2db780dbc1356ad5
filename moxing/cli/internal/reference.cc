#include "moxing/cli/internal/reference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace mox::cli {
namespace {

constexpr size_t kReferenceWidth = 100;

using Lines = std::vector<std::string_view>;

Lines lines_of(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// What stands between code marks, in order.
Lines marked_names(std::string_view line) {
  Lines names;
  for (size_t from = 0;;) {
    const size_t begin = line.find('`', from);
    const size_t end = begin == line.npos ? line.npos : line.find('`', begin + 1);
    if (end == line.npos) return names;
    names.push_back(line.substr(begin + 1, end - begin - 1));
    from = end + 1;
  }
}

Lines cells_of(std::string_view row) {
  Lines cells;
  row.remove_prefix(1);
  while (!row.empty()) {
    const size_t end = std::min(row.find(" |"), row.size());
    std::string_view cell = row.substr(0, end);
    while (cell.starts_with(' ')) cell.remove_prefix(1);
    cells.push_back(cell);
    row.remove_prefix(std::min(end + 2, row.size()));
  }
  return cells;
}

// "Dataset::shuffle" is called shuffle, too.
bool is_called(std::string_view full, std::string_view name) {
  return full == name || (full.ends_with(name) && full.substr(0, full.size() - name.size()).ends_with("::"));
}

std::string plain(std::string_view markdown) {
  std::string text;
  for (size_t i = 0; i < markdown.size(); ++i) {
    const bool escaped = markdown[i] == '\\' && i + 1 < markdown.size() &&
                         (markdown[i + 1] == '*' || markdown[i + 1] == '<' || markdown[i + 1] == '|');
    if (escaped) ++i;
    if (escaped || markdown[i] != '`') text += markdown[i];
  }
  return text;
}

std::string wrapped(std::string_view markdown, std::string_view indent, std::string_view next_indent) {
  std::string text, line(indent);
  bool begun = false;
  const std::string words = plain(markdown);
  for (size_t from = 0; from < words.size();) {
    const size_t end = std::min(words.find(' ', from), words.size());
    const std::string_view word = std::string_view(words).substr(from, end - from);
    if (begun && line.size() + 1 + word.size() > kReferenceWidth) {
      text += line + "\n";
      line = next_indent;
      begun = false;
    }
    if (begun) line += ' ';
    line += word;
    begun = true;
    from = end + 1;
  }
  return text + line + "\n";
}

// A section of a page: a heading with names, and what follows it.
struct Section {
  Lines names, body;
};

std::vector<Section> sections_of(const Lines& lines) {
  std::vector<Section> sections;
  bool inside = false;
  for (const std::string_view line : lines) {
    if (line.starts_with("# ") || line.starts_with("Header [")) inside = false;
    if (line.starts_with("## ")) {
      inside = line.starts_with("## `");
      if (inside) sections.push_back({marked_names(line), {}});
    } else if (inside) {
      sections.back().body.push_back(line);
    }
  }
  return sections;
}

std::string shown(const Section& section, std::string_view title) {
  std::string text = fmt::format("{}  ({})\n", fmt::join(section.names, ", "), title);
  bool is_code = false;
  for (const std::string_view line : section.body) {
    if (line.starts_with("```")) {
      is_code = !is_code;
    } else if (is_code) {
      text += fmt::format("      {}\n", line);
    } else if (line.empty()) {
      text += "\n";
    } else {
      text += wrapped(line, "  ", line.starts_with("- ") ? "      " : "  ");
    }
  }
  while (text.ends_with("\n\n")) text.pop_back();
  return text;
}

// Rows of tables whose first cell names `name`, with the words of the table's head.
std::string shown_rows(const ReferencePage& page, const Lines& lines, std::string_view name) {
  std::string text;
  Lines head;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].starts_with("| ")) continue;
    if (i + 1 < lines.size() && lines[i + 1].starts_with("|-")) {
      head = cells_of(lines[i]);
      continue;
    }
    const Lines cells = cells_of(lines[i]);
    const Lines names = marked_names(cells[0]);
    if (std::find(names.begin(), names.end(), name) == names.end()) continue;
    text += fmt::format("{}{}  (docs/{})\n", text.empty() ? "" : "\n", plain(cells[0]), page.name);
    for (size_t c = 1; c < std::min(cells.size(), head.size()); ++c)
      if (!cells[c].empty()) text += wrapped(fmt::format("{}: {}", head[c], cells[c]), "  ", "      ");
  }
  return text;
}

void append(std::string* text, const std::string& more) {
  if (!text->empty() && !more.empty()) *text += "\n";
  *text += more;
}

}  // namespace

std::string reference_of(std::string_view name, std::span<const ReferencePage> pages) {
  if (name.starts_with("mox::")) name.remove_prefix(5);
  if (name.empty()) return "";
  std::string text;
  for (const ReferencePage& page : pages) {
    const Lines lines = lines_of(page.text);
    const std::string_view title = lines.empty() ? "" : lines[0].substr(std::min<size_t>(2, lines[0].size()));
    for (const Section& section : sections_of(lines)) {
      const bool whole = std::any_of(section.names.begin(), section.names.end(),
                                     [&](std::string_view full) { return is_called(full, name); });
      if (whole) append(&text, shown(section, title));
      if (whole) continue;
      for (const std::string_view line : section.body) {
        if (!line.starts_with("- `")) continue;
        const std::string field = fmt::format("{}::{}", section.names[0], marked_names(line)[0]);
        if (is_called(field, name))
          append(&text, fmt::format("{}  ({})\n{}", field, title, wrapped(line, "  ", "      ")));
      }
    }
    append(&text, shown_rows(page, lines, name));
  }
  return text;
}

std::vector<std::string> reference_names(std::span<const ReferencePage> pages) {
  std::set<std::string> names;
  for (const ReferencePage& page : pages) {
    const Lines lines = lines_of(page.text);
    for (const Section& section : sections_of(lines))
      for (const std::string_view full : section.names) {
        names.emplace(full);
        const size_t last = full.rfind("::");
        if (last != full.npos) names.emplace(full.substr(last + 2));
      }
    for (const std::string_view line : lines)
      if (line.starts_with("| `"))
        for (const std::string_view name : marked_names(cells_of(line)[0])) names.emplace(name);
  }
  return {names.begin(), names.end()};
}

}  // namespace mox::cli
