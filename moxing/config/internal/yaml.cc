#include "moxing/config/internal/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/exceptions.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "moxing/config/internal/nearest.h"
#include "moxing/config/internal/text_encoding.h"
#include "moxing/config/internal/yaml/tree.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace mox::internal {
namespace {

// A configuration is written by hand; a larger file is a data file named by mistake.
constexpr std::uintmax_t kLargestFile = 4 << 20;

// Maps that `<<` brings in, those inside of others included: an alias may hold itself.
constexpr int kMostMerged = 1000;

constexpr std::string_view kMergeKey = "<<";
constexpr std::string_view kHolderPrefix = "x-";  // of sections that are there for `<<` alone

// Of the parser, as far as they cannot hold a value: newer versions of yaml-cpp name the anchor, and what
// begins with * may be a password that needs quotes.
std::string words_of(const YAML::Exception& failure) {
  constexpr std::string_view kUnknownAnchor = "the referenced anchor is not defined";
  if (!failure.msg.starts_with(kUnknownAnchor)) return failure.msg;
  return fmt::format("{} (a text that begins with * needs quotes)", kUnknownAnchor);
}

std::string read_configuration_file(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    throw ConfigError(fmt::format("--config: there is no file '{}'.", path));
  }
  if (std::filesystem::is_directory(status)) {
    throw ConfigError(fmt::format("--config: '{}' is a directory; name a YAML file.", path));
  }
  if (!error && !std::filesystem::is_regular_file(status) && !std::filesystem::is_fifo(status)) {
    throw ConfigError(fmt::format("--config: '{}' is not a file.", path));
  }
  if (std::filesystem::is_regular_file(status) && std::filesystem::file_size(path, error) > kLargestFile &&
      !error) {
    throw ConfigError(
        fmt::format("--config: '{}' is larger than {} MiB, which is no configuration; name a YAML file.",
                    path, kLargestFile >> 20));
  }
  try {
    return read_file(path);
  } catch (const Error& failure) {
    throw ConfigError(fmt::format("--config: {}.", failure.what()));
  }
}

class YamlReader {
 public:
  YamlReader(std::string path, ConfigStore* store) : path_(std::move(path)), store_(store) {}

  void read() {
    std::string content = read_configuration_file(path_);
    const size_t bytes = content.size();
    content = as_utf8(content, path_);
    // yaml-cpp takes a quoted text that is never closed as closed by the end of the file if that end is a
    // line break, and swallows the keys below it. A comment behind the last line makes it see the mistake.
    content += content.ends_with('\n') ? "#" : "\n#";
    try {
      const YamlTree tree(path_, content, bytes);
      if (tree.documents() > 1) {
        throw ConfigError(fmt::format("{}: the file holds {} YAML documents (separated by ---); keep one.",
                                      at(tree.second_line()), tree.documents()));
      }
      const YamlNode root = tree.root();
      if (!root || root.kind() == YamlKind::kNull) return;
      if (root.kind() != YamlKind::kMap) {
        throw ConfigError(
            fmt::format("{}: a configuration is made of lines 'key: value'; this file holds a {}.",
                        at(root.line()), root.kind() == YamlKind::kList ? "list" : "text"));
      }
      used_.assign(tree.size(), false);
      read_section("", root);
      for (const YamlNode& holder : holders_) check_used(holder);
    } catch (const YAML::Exception& failure) {
      throw_if_indented_with_a_tab(content, failure.mark);
      throw ConfigError(fmt::format("{}: the file is not well-formed YAML: {}.",
                                    at(failure.mark.is_null() ? -1 : failure.mark.line), words_of(failure)));
    }
  }

 private:
  std::string at(int line) const { return line < 0 ? path_ : fmt::format("{}:{}", path_, line + 1); }

  void throw_if_indented_with_a_tab(const std::string& content, const YAML::Mark& mark) const {
    if (mark.is_null()) return;
    size_t begin = std::min(static_cast<size_t>(mark.pos), content.size());
    begin = begin == 0 ? 0 : content.rfind('\n', begin - 1) + 1;  // npos + 1: the first line
    const size_t text = content.find_first_not_of(" \t", begin);
    const size_t tab = content.find('\t', begin);
    if (tab == std::string::npos || (text != std::string::npos && tab > text)) return;
    throw ConfigError(fmt::format(
        "{}: the line is indented with a tab, which YAML does not allow; use spaces.", at(mark.line)));
  }

  std::string key_of(const YamlNode& key) const {
    if (key.kind() != YamlKind::kScalar)
      throw ConfigError(fmt::format("{}: a key must be a name.", at(key.line())));
    return std::string(key.text());
  }

  void use(const YamlNode& node) { used_[node.number()] = true; }

  void read_section(const std::string& section, const YamlNode& map) {
    std::set<std::string> given;
    std::vector<YamlNode> merged;
    for (YamlNode item = map.first(); item; item = item.next().next()) {
      const std::string key = key_of(item);
      const YamlNode value = item.next();
      if (key == kMergeKey) {
        merged.push_back(value);
      } else if (section.empty() && key.starts_with(kHolderPrefix) && value.kind() == YamlKind::kMap) {
        holders_.push_back(value);
      } else {
        given.insert(key);
        read_key(section.empty() ? key : fmt::format("{}.{}", section, key), item.line(), value);
      }
    }
    for (const YamlNode& value : merged) merge(section, value, &given);
  }

  // The keys of a map, or of a list of maps, that the section does not give itself; of several maps the first
  // that has a key counts.
  void merge(const std::string& section, const YamlNode& value, std::set<std::string>* given) {
    if (value.kind() == YamlKind::kList) {
      for (YamlNode map = value.first(); map; map = map.next()) merge_map(section, map, given);
    } else {
      merge_map(section, value, given);
    }
  }

  void merge_map(const std::string& section, const YamlNode& map, std::set<std::string>* given) {
    if (map.kind() != YamlKind::kMap)
      throw ConfigError(
          fmt::format("{}: '<<' takes a section of keys, or a list of them, that '&NAME' stands before and "
                      "'*NAME' brings in.",
                      at(map.line())));
    if (++merged_ > kMostMerged)
      throw ConfigError(fmt::format("{}: '<<' brings in more than {} sections; one of them holds itself.",
                                    at(map.line()), kMostMerged));
    use(map);
    const int outer = std::exchange(merge_, merged_);
    std::vector<YamlNode> inner;
    for (YamlNode item = map.first(); item; item = item.next().next()) {
      const std::string key = key_of(item);
      if (key == kMergeKey) {
        inner.push_back(item.next());
      } else if (given->insert(key).second) {
        read_key(section.empty() ? key : fmt::format("{}.{}", section, key), item.line(), item.next());
      }
    }
    for (const YamlNode& value : inner) merge(section, value, given);
    merge_ = outer;
  }

  // A section for '<<' alone that nothing brings in would be settings that count for nothing.
  void check_used(const YamlNode& holder) const {
    if (used_[holder.number()]) return;
    for (YamlNode item = holder.first(); item; item = item.next().next())
      if (used_[item.next().number()]) return;
    throw ConfigError(
        fmt::format("{}: no '<<: *NAME' brings in this section (one whose name begins with '{}' counts only "
                    "where it does).",
                    at(holder.line()), kHolderPrefix));
  }

  void read_key(const std::string& name, int line, const YamlNode& node) {
    Setting* setting = store_->find(name);
    if (!setting && store_->is_section(name)) {
      if (node.kind() == YamlKind::kNull) return;
      if (node.kind() != YamlKind::kMap) throw_not_a_section(name, line);
      use(node);
      return read_section(name, node);
    }
    if (!setting) throw_unknown_key(name, line);
    if (setting->option.command_line_only) {
      throw ConfigError(
          fmt::format("{}: '{}' can only be given on the command line; remove this line.", at(line), name));
    }
    const auto [first, is_new] = given_.emplace(name, Given{at(line), merge_});
    if (!is_new) {
      // One spells its section by indentation and the other with dots: the nearer one has been read before.
      if (first->second.merge < merge_) return;
      throw ConfigError(fmt::format("{}: '{}' is already given at {}; keep one of the two.", at(line), name,
                                    first->second.where));
    }
    use(node);
    WrittenValue written = to_written(node);
    if (node.kind() == YamlKind::kNull) written.where = at(line);
    if (node.kind() == YamlKind::kList) {
      for (YamlNode element = node.first(); element; element = element.next()) use(element);
      setting->written = parse_value(setting->option, written, [&, element = node.first()]() mutable {
        return to_written(std::exchange(element, element.next()), true);
      });
    } else {
      setting->written = parse_value(setting->option, written);
    }
    setting->written_at = at(line);
  }

  // Without what follows a name, which may be a secret: `key:secret` is a key as a whole.
  [[noreturn]] void throw_unknown_key(const std::string& key, int line) const {
    constexpr size_t kLongest = 100;
    const auto is_of_no_name = [](char c) {
      return c >= 0 && !std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.' && c != '-';
    };
    const std::string name(key.begin(), std::ranges::find_if(key, is_of_no_name));
    if (name == key)
      throw ConfigError(fmt::format("{}: unknown key '{}'; {} (--help lists all).", at(line),
                                    name.substr(0, kLongest),
                                    nearest_option_text("key", "", name, store_->names())));
    throw ConfigError(fmt::format("{}: unknown key '{}...', whose rest is not shown; {} (--help lists all).",
                                  at(line), name.substr(0, kLongest),
                                  store_->find(name)
                                      ? fmt::format("write '{}: VALUE', with a space behind the colon", name)
                                      : nearest_option_text("key", "", name, store_->names())));
  }

  [[noreturn]] void throw_not_a_section(const std::string& name, int line) {
    std::string keys;
    for (const std::string& key : store_->keys_of(name)) keys += (keys.empty() ? "" : ", ") + key;
    throw ConfigError(
        fmt::format("{}: '{}' is a section; indent one of its keys below it ({}).", at(line), name, keys));
  }

  // Without the elements of a list: they are read one by one. Lists are of scalars only, so deeper nesting
  // (an alias of itself included) is not followed.
  WrittenValue to_written(const YamlNode& node, bool inside_a_list = false) const {
    WrittenValue written{.where = at(node.line())};
    switch (node.kind()) {
      case YamlKind::kNull:
        written.kind = WrittenValue::Kind::kNothing;
        break;
      case YamlKind::kScalar:
        written.text = node.text();
        written.quoted = node.is_quoted();
        break;
      case YamlKind::kList:
        written.kind = WrittenValue::Kind::kList;
        written.size = node.size();
        break;
      case YamlKind::kMap:
        written.kind = WrittenValue::Kind::kMap;
        if (!inside_a_list) break;
        for (YamlNode item = node.first(); item; item = item.next().next()) {
          const YamlNode value = item.next();
          const bool is_scalar = value.kind() == YamlKind::kScalar;
          written.elements.push_back(
              {.kind = is_scalar ? WrittenValue::Kind::kScalar : WrittenValue::Kind::kMap,
               .text = fmt::format("{}={}", key_of(item), value.text()),
               .where = at(item.line())});
        }
    }
    return written;
  }

  std::string path_;
  ConfigStore* store_;
  struct Given {
    std::string where;
    int merge;  // by which it was brought in; 0: by none
  };
  std::map<std::string, Given> given_;  // by the option's name
  int merged_ = 0, merge_ = 0;          // how many '<<' were brought in; which one is being read
  std::vector<YamlNode> holders_;       // top-level sections that are there for '<<' alone
  std::vector<bool> used_;              // by the number of a node: whether it counts
};

}  // namespace

void read_yaml(const std::string& path, ConfigStore* store) { YamlReader(path, store).read(); }

}  // namespace mox::internal
