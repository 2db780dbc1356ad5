// What a YAML file holds, compact: some twenty bytes a value and its text, where the nodes of yaml-cpp are
// some hundred bytes and more. Made of the parser's events, and bounded by the size of the file.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace mox::internal {

enum class YamlKind : uint8_t { kNull, kScalar, kList, kMap };

class YamlTree;

// A value of a tree, which must outlive it. An alias is what it stands for; that may hold the alias.
class YamlNode {
 public:
  YamlNode() = default;
  explicit operator bool() const { return tree_ != nullptr; }
  YamlKind kind() const;
  std::string_view text() const;  // of a scalar
  bool is_quoted() const;         // a scalar that is a text even if it looks like a number
  int line() const;               // from 0; -1 where the parser does not say
  uint32_t number() const;        // the same for an alias and what it stands for
  // The elements of a list, or of a map its keys and values by turns: for (n = list.first(); n; n =
  // n.next()). Nothing behind the last one, and of a scalar.
  YamlNode first() const;
  YamlNode next() const;
  size_t size() const;  // how many

 private:
  friend class YamlTree;
  YamlNode(const YamlTree* tree, uint32_t place) : tree_(tree), place_(place) {}
  const YamlTree* tree_ = nullptr;
  uint32_t place_ = 0;
};

class YamlTree {
 public:
  // Of `text`, the content of the file at `path`, which had `bytes` bytes. Throws YAML::Exception for what is
  // no YAML, and ConfigError for tags without a meaning here and for a file that would take too much.
  YamlTree(const std::string& path, const std::string& text, size_t bytes);

  int documents() const { return documents_; }
  YamlNode root() const { return documents_ > 0 ? YamlNode(this, 1) : YamlNode(); }  // of the first document
  int second_line() const { return second_line_; }  // where the second one begins
  size_t size() const { return values_.size(); }    // more than every number() is

 private:
  friend class YamlNode;
  friend class YamlTreeBuilder;
  struct Value {
    uint32_t next = 0;   // the value behind it in the same list or map
    uint32_t begin = 0;  // of the text; of a list or map its first value; of an alias what it stands for
    uint32_t size = 0;   // of the text; of a list or map how many values
    int32_t line = -1;
    YamlKind kind = YamlKind::kNull;
    bool is_quoted = false, is_alias = false;
  };
  const Value& resolved(uint32_t place) const;

  std::deque<Value> values_{1};  // the first one is none
  std::string texts_;
  int documents_ = 0, second_line_ = -1;
};

}  // namespace mox::internal
