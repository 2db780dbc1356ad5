#include "moxing/config/internal/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "moxing/config/internal/nearest.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace mox::internal {
namespace {

// A configuration is written by hand; a larger file is a data file named by mistake.
constexpr std::uintmax_t kLargestFile = 4 << 20;

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
    // yaml-cpp takes a quoted text that is never closed as closed by the end of the file if that end is a
    // line break, and swallows the keys below it. A comment behind the last line makes it see the mistake.
    content += content.ends_with('\n') ? "#" : "\n#";
    try {
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
    } catch (const YAML::Exception& failure) {
      throw ConfigError(
          fmt::format("{}: the file is not well-formed YAML: {}.", at(failure.mark), failure.msg));
    }
  }

 private:
  std::string at(const YAML::Mark& mark) const {
    return mark.is_null() ? path_ : fmt::format("{}:{}", path_, mark.line + 1);
  }

  void read_section(const std::string& section, const YAML::Node& map) {
    for (const auto& item : map) {
      const YAML::Mark mark = item.first.Mark();
      if (!item.first.IsScalar()) throw ConfigError(fmt::format("{}: a key must be a name.", at(mark)));
      const std::string key = item.first.Scalar();
      read_key(section.empty() ? key : fmt::format("{}.{}", section, key), mark, item.second);
    }
  }

  void read_key(const std::string& name, const YAML::Mark& mark, const YAML::Node& node) {
    Setting* setting = store_->find(name);
    if (!setting && store_->is_section(name)) {
      if (node.IsNull()) return;
      if (!node.IsMap()) throw_not_a_section(name, mark);
      return read_section(name, node);
    }
    if (!setting) {
      throw ConfigError(fmt::format("{}: unknown key '{}'; {} (--help lists all).", at(mark),
                                    name.substr(0, 100),
                                    nearest_option_text("key", "", name, store_->names())));
    }
    if (setting->option.command_line_only) {
      throw ConfigError(
          fmt::format("{}: '{}' can only be given on the command line; remove this line.", at(mark), name));
    }
    const auto [first, is_new] = line_of_.emplace(name, at(mark));
    if (!is_new) {
      throw ConfigError(fmt::format("{}: '{}' is already given at {}; keep one of the two.", at(mark), name,
                                    first->second));
    }
    WrittenValue written = to_written(node);
    if (node.IsNull()) written.where = at(mark);
    setting->written = parse_value(setting->option, written);
    setting->written_at = at(mark);
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
      written.quoted = node.Tag() == "!" || node.Tag() == "tag:yaml.org,2002:str";
    } else if (node.IsSequence()) {
      written.kind = WrittenValue::Kind::kList;
      if (!inside_a_list) {
        for (const YAML::Node& element : node) written.elements.push_back(to_written(element, true));
      }
    } else {
      written.kind = node.IsMap() ? WrittenValue::Kind::kMap : WrittenValue::Kind::kNothing;
    }
    return written;
  }

  std::string path_;
  ConfigStore* store_;
  std::map<std::string, std::string> line_of_;  // name of an option -> where it was given
};

}  // namespace

void read_yaml(const std::string& path, ConfigStore* store) { YamlReader(path, store).read(); }

}  // namespace mox::internal
