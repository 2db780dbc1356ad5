#include "moxing/config/internal/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include "moxing/config/internal/nearest.h"
#include "moxing/config/internal/text_encoding.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace mox::internal {
namespace {

// A configuration is written by hand; a larger file is a data file named by mistake.
constexpr std::uintmax_t kLargestFile = 4 << 20;

constexpr int kMostValues = 20'000;

// Maps that `<<` brings in, those inside of others included: an alias may hold itself.
constexpr int kMostMerged = 1000;

constexpr std::string_view kCoreTag = "tag:yaml.org,2002:";  // what !! stands for

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

// Looks at a text before it is kept: counts its values, for each takes some hundred bytes, and refuses tags
// that would be lost, and the value with them: `key: !word`.
class ContentCheck : public YAML::EventHandler {
 public:
  explicit ContentCheck(const std::string& path) : path_(path) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { count(mark); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { count(mark); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t, const std::string&) override {
    count(mark);
    check_tag(mark, tag, {"str", "int", "float", "bool"});
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    count(mark);
    check_tag(mark, tag, {"seq"});
  }
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    count(mark);
    check_tag(mark, tag, {"map"});
  }
  void OnMapEnd() override {}

 private:
  // Without the tag in the message: it may be a secret that begins with '!'.
  void check_tag(const YAML::Mark& mark, std::string_view tag,
                 std::initializer_list<std::string_view> known) const {
    if (tag.empty() || tag == "?" || tag == "!") return;  // none, or what quotes are
    if (tag.starts_with(kCoreTag) && std::ranges::find(known, tag.substr(kCoreTag.size())) != known.end())
      return;
    throw ConfigError(
        fmt::format("{}:{}: a word behind '!' is a tag in YAML, and this one has no meaning here; put a text "
                    "that begins with '!' in quotes.",
                    path_, mark.line + 1));
  }
  void count(const YAML::Mark& mark) {
    if (++values_ > kMostValues)
      throw ConfigError(fmt::format(
          "{}:{}: the file holds more than {} values, which is no configuration; name a YAML file.", path_,
          mark.line + 1, kMostValues));
  }
  const std::string& path_;
  int values_ = 0;
};

class YamlReader {
 public:
  YamlReader(std::string path, ConfigStore* store) : path_(std::move(path)), store_(store) {}

  void read() {
    std::string content = as_utf8(read_configuration_file(path_), path_);
    // yaml-cpp takes a quoted text that is never closed as closed by the end of the file if that end is a
    // line break, and swallows the keys below it. A comment behind the last line makes it see the mistake.
    content += content.ends_with('\n') ? "#" : "\n#";
    try {
      check_content(content);
      const std::vector<YAML::Node> documents = YAML::LoadAll(content);
      if (documents.size() > 1) {
        throw ConfigError(fmt::format("{}: the file holds {} YAML documents (separated by ---); keep one.",
                                      at(documents[1].Mark()), documents.size()));
      }
      if (documents.empty() || documents[0].IsNull()) return;
      if (!documents[0].IsMap()) {
        throw ConfigError(
            fmt::format("{}: a configuration is made of lines 'key: value'; this file holds a {}.",
                        at(documents[0].Mark()), documents[0].IsSequence() ? "list" : "text"));
      }
      read_section("", documents[0]);
      for (const YAML::Node& holder : holders_) check_used(holder);
    } catch (const YAML::Exception& failure) {
      throw_if_indented_with_a_tab(content, failure.mark);
      throw ConfigError(
          fmt::format("{}: the file is not well-formed YAML: {}.", at(failure.mark), words_of(failure)));
    }
  }

 private:
  void check_content(const std::string& content) const {
    std::istringstream stream(content);
    YAML::Parser parser(stream);
    ContentCheck check(path_);
    while (parser.HandleNextDocument(check)) continue;
  }

  std::string at(const YAML::Mark& mark) const {
    return mark.is_null() ? path_ : fmt::format("{}:{}", path_, mark.line + 1);
  }

  void throw_if_indented_with_a_tab(const std::string& content, const YAML::Mark& mark) const {
    if (mark.is_null()) return;
    size_t begin = std::min(static_cast<size_t>(mark.pos), content.size());
    begin = begin == 0 ? 0 : content.rfind('\n', begin - 1) + 1;  // npos + 1: the first line
    const size_t text = content.find_first_not_of(" \t", begin);
    const size_t tab = content.find('\t', begin);
    if (tab == std::string::npos || (text != std::string::npos && tab > text)) return;
    throw ConfigError(
        fmt::format("{}: the line is indented with a tab, which YAML does not allow; use spaces.", at(mark)));
  }

  static std::string key_of(const YAML::Node& key, const std::string& where) {
    if (!key.IsScalar()) throw ConfigError(fmt::format("{}: a key must be a name.", where));
    return key.Scalar();
  }

  void read_section(const std::string& section, const YAML::Node& map) {
    std::set<std::string> given;
    std::vector<YAML::Node> merged;
    for (const auto& item : map) {
      const YAML::Mark mark = item.first.Mark();
      const std::string key = key_of(item.first, at(mark));
      if (key == kMergeKey) {
        merged.push_back(item.second);
      } else if (section.empty() && key.starts_with(kHolderPrefix) && item.second.IsMap()) {
        holders_.push_back(item.second);
      } else {
        given.insert(key);
        read_key(section.empty() ? key : fmt::format("{}.{}", section, key), mark, item.second);
      }
    }
    for (const YAML::Node& value : merged) merge(section, value, &given);
  }

  // The keys of a map, or of a list of maps, that the section does not give itself; of several maps the first
  // that has a key counts.
  void merge(const std::string& section, const YAML::Node& value, std::set<std::string>* given) {
    if (value.IsSequence()) {
      for (const YAML::Node& map : value) merge_map(section, map, given);
    } else {
      merge_map(section, value, given);
    }
  }

  void merge_map(const std::string& section, const YAML::Node& map, std::set<std::string>* given) {
    if (!map.IsMap())
      throw ConfigError(
          fmt::format("{}: '<<' takes a section of keys, or a list of them, that '&NAME' stands before and "
                      "'*NAME' brings in.",
                      at(map.Mark())));
    if (++merged_ > kMostMerged)
      throw ConfigError(fmt::format("{}: '<<' brings in more than {} sections; one of them holds itself.",
                                    at(map.Mark()), kMostMerged));
    used_.push_back(map);
    std::vector<YAML::Node> inner;
    for (const auto& item : map) {
      const YAML::Mark mark = item.first.Mark();
      const std::string key = key_of(item.first, at(mark));
      if (key == kMergeKey) {
        inner.push_back(item.second);
      } else if (given->insert(key).second) {
        read_key(section.empty() ? key : fmt::format("{}.{}", section, key), mark, item.second);
      }
    }
    for (const YAML::Node& value : inner) merge(section, value, given);
  }

  // A section for '<<' alone that nothing brings in would be settings that count for nothing.
  void check_used(const YAML::Node& holder) const {
    const auto is_used = [&](const YAML::Node& node) {
      return std::any_of(used_.begin(), used_.end(), [&](const YAML::Node& used) { return used.is(node); });
    };
    if (is_used(holder)) return;
    for (const auto& item : holder)
      if (is_used(item.second)) return;
    throw ConfigError(
        fmt::format("{}: no '<<: *NAME' brings in this section (one whose name begins with '{}' counts only "
                    "where it does).",
                    at(holder.Mark()), kHolderPrefix));
  }

  void read_key(const std::string& name, const YAML::Mark& mark, const YAML::Node& node) {
    Setting* setting = store_->find(name);
    if (!setting && store_->is_section(name)) {
      if (node.IsNull()) return;
      if (!node.IsMap()) throw_not_a_section(name, mark);
      used_.push_back(node);
      return read_section(name, node);
    }
    if (!setting) throw_unknown_key(name, mark);
    if (setting->option.command_line_only) {
      throw ConfigError(
          fmt::format("{}: '{}' can only be given on the command line; remove this line.", at(mark), name));
    }
    const auto [first, is_new] = line_of_.emplace(name, at(mark));
    if (!is_new) {
      throw ConfigError(fmt::format("{}: '{}' is already given at {}; keep one of the two.", at(mark), name,
                                    first->second));
    }
    used_.push_back(node);
    if (node.IsSequence())
      for (const YAML::Node& element : node) used_.push_back(element);
    WrittenValue written = to_written(node);
    if (node.IsNull()) written.where = at(mark);
    setting->written = parse_value(setting->option, written);
    setting->written_at = at(mark);
  }

  // Without what follows a name, which may be a secret: `key:secret` is a key as a whole.
  [[noreturn]] void throw_unknown_key(const std::string& key, const YAML::Mark& mark) const {
    constexpr size_t kLongest = 100;
    const auto is_of_no_name = [](char c) {
      return c >= 0 && !std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.' && c != '-';
    };
    const std::string name(key.begin(), std::ranges::find_if(key, is_of_no_name));
    if (name == key)
      throw ConfigError(fmt::format("{}: unknown key '{}'; {} (--help lists all).", at(mark),
                                    name.substr(0, kLongest),
                                    nearest_option_text("key", "", name, store_->names())));
    throw ConfigError(fmt::format("{}: unknown key '{}...', whose rest is not shown; {} (--help lists all).",
                                  at(mark), name.substr(0, kLongest),
                                  store_->find(name)
                                      ? fmt::format("write '{}: VALUE', with a space behind the colon", name)
                                      : nearest_option_text("key", "", name, store_->names())));
  }

  [[noreturn]] void throw_not_a_section(const std::string& name, const YAML::Mark& mark) {
    std::string keys;
    for (const std::string& key : store_->keys_of(name)) keys += (keys.empty() ? "" : ", ") + key;
    throw ConfigError(
        fmt::format("{}: '{}' is a section; indent one of its keys below it ({}).", at(mark), name, keys));
  }

  // Lists are of scalars only, so one level is read and deeper nesting (an alias of itself included) is not
  // followed.
  WrittenValue to_written(const YAML::Node& node, bool inside_a_list = false) const {
    WrittenValue written{.where = at(node.Mark())};
    if (node.IsScalar()) {
      written.text = node.Scalar();
      written.quoted = node.Tag() == "!" || node.Tag() == std::string(kCoreTag) + "str";
    } else if (node.IsSequence()) {
      written.kind = WrittenValue::Kind::kList;
      if (!inside_a_list) {
        for (const YAML::Node& element : node) written.elements.push_back(to_written(element, true));
      }
    } else {
      written.kind = node.IsMap() ? WrittenValue::Kind::kMap : WrittenValue::Kind::kNothing;
      if (!node.IsMap() || !inside_a_list) return written;
      for (const auto& item : node) {
        const std::string key = key_of(item.first, at(item.first.Mark()));
        const bool scalar = item.second.IsScalar();
        written.elements.push_back({.kind = scalar ? WrittenValue::Kind::kScalar : WrittenValue::Kind::kMap,
                                    .text = key + '=' + (scalar ? item.second.Scalar() : ""),
                                    .where = at(item.first.Mark())});
      }
    }
    return written;
  }

  std::string path_;
  ConfigStore* store_;
  std::map<std::string, std::string> line_of_;  // name of an option -> where it was given
  int merged_ = 0;
  std::vector<YAML::Node> holders_;  // top-level sections that are there for '<<' alone
  std::vector<YAML::Node> used_;     // values and sections that count
};

}  // namespace

void read_yaml(const std::string& path, ConfigStore* store) { YamlReader(path, store).read(); }

}  // namespace mox::internal
