#include "moxing/config/internal/yaml/tree.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <initializer_list>
#include <istream>
#include <vector>

#include "moxing/config/internal/yaml/scanned_text.h"
#include "runtime/base/error.h"

namespace mox::internal {
namespace {

constexpr int kMostValues = 20'000;

// What a file may take of memory, its text not counted: so much a byte, and beside it what a small
// one may take.
constexpr int64_t kBudgetPerByte = 11, kBudgetOfSmall = 700'000;
constexpr size_t kSmallFile = 16 << 10;

int64_t budget_of(size_t bytes) {
  return kBudgetPerByte * static_cast<int64_t>(bytes) + (bytes < kSmallFile ? kBudgetOfSmall : 0);
}

// What is taken for a value: in the tree, for the place where the parser believes a key to begin (it keeps
// all of them to the end), for what an option makes of an element in brackets, and for the name of an anchor.
constexpr int64_t kValueBytes = 72, kBracketedBytes = 48, kAnchorBytes = 96;

constexpr std::string_view kCoreTag = "tag:yaml.org,2002:";  // what !! stands for

}  // namespace

// Puts the events of the parser into a tree; of a second document and those behind it only their number.
class YamlTreeBuilder : public YAML::EventHandler {
 public:
  YamlTreeBuilder(const std::string& path, ScannedText* text, YamlTree* tree)
      : path_(path), text_(text), tree_(tree) {}

  void OnDocumentStart(const YAML::Mark&) override {
    ++tree_->documents_;
    anchors_.assign(1, 0);  // they count from 1
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add(mark, YamlKind::kNull, anchor); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    YamlTree::Value& value = add(mark, YamlKind::kNull, 0);
    value.is_alias = true;
    value.begin = anchors_.at(anchor);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    YamlTree::Value& value = add(mark, YamlKind::kScalar, anchor);
    check_tag(mark, tag, {"str", "int", "float", "bool"});
    value.is_quoted = tag == "!" || tag == std::string(kCoreTag) + "str";
    if (tree_->documents_ > 1) return;
    value.begin = static_cast<uint32_t>(tree_->texts_.size());
    value.size = static_cast<uint32_t>(text.size());
    tree_->texts_ += text;
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    add(mark, YamlKind::kList, anchor);
    check_tag(mark, tag, {"seq"});
    open(style);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    add(mark, YamlKind::kMap, anchor);
    check_tag(mark, tag, {"map"});
    open(style);
  }
  void OnMapEnd() override { close(); }

 private:
  // A list or map that is not at its end yet.
  struct Open {
    uint32_t place = 0, last = 0;  // its own, and of the last value in it
    bool is_in_brackets = false;
  };

  YamlTree::Value& add(const YAML::Mark& mark, YamlKind kind, YAML::anchor_t anchor) {
    text_->release_to(mark);
    if (++count_ > kMostValues)
      throw ConfigError(fmt::format(
          "{}:{}: the file holds more than {} values, which is no configuration; name a YAML file.", path_,
          mark.line + 1, kMostValues));
    text_->take((text_->is_in_brackets() ? kBracketedBytes : kValueBytes) + (anchor ? kAnchorBytes : 0));
    const int line = mark.is_null() ? -1 : mark.line;
    if (tree_->documents_ > 1) {
      if (tree_->second_line_ < 0) tree_->second_line_ = line;
      if (anchor) anchors_.push_back(0);
      return not_kept_ = {};
    }
    const auto place = static_cast<uint32_t>(tree_->values_.size());
    if (anchor) anchors_.push_back(place);
    if (!open_.empty()) {
      Open& holder = open_.back();
      ++tree_->values_[holder.place].size;
      (holder.last == 0 ? tree_->values_[holder.place].begin : tree_->values_[holder.last].next) = place;
      holder.last = place;
    }
    YamlTree::Value& value = tree_->values_.emplace_back();
    value.line = line;
    value.kind = kind;
    return value;
  }

  void open(YAML::EmitterStyle::value style) {
    const bool is_in_brackets = style == YAML::EmitterStyle::Flow;
    if (is_in_brackets) text_->enter_brackets();
    open_.push_back({static_cast<uint32_t>(tree_->values_.size() - 1), 0, is_in_brackets});
  }
  void close() {
    if (open_.back().is_in_brackets) text_->leave_brackets();
    open_.pop_back();
  }

  // A tag that would be lost, and the value with it: `key: !word`. Not in the message: it may be a secret
  // that begins with '!'.
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

  const std::string& path_;
  ScannedText* text_;
  YamlTree* tree_;
  int count_ = 0;
  std::vector<Open> open_;
  std::vector<uint32_t> anchors_;  // where they are
  YamlTree::Value not_kept_;       // of a later document
};

YamlTree::YamlTree(const std::string& path, const std::string& text, size_t bytes) {
  ScannedText scanned(path, text, budget_of(bytes));
  texts_.reserve(text.size());
  std::istream stream(&scanned);
  stream.exceptions(std::ios::badbit);  // what the text throws is thrown on
  YAML::Parser parser(stream);
  YamlTreeBuilder builder(path, &scanned, this);
  while (parser.HandleNextDocument(builder)) continue;
}

const YamlTree::Value& YamlTree::resolved(uint32_t place) const {
  const Value& value = values_[place];
  return value.is_alias ? values_[value.begin] : value;
}

YamlKind YamlNode::kind() const { return tree_->resolved(place_).kind; }
bool YamlNode::is_quoted() const { return tree_->resolved(place_).is_quoted; }
int YamlNode::line() const { return tree_->resolved(place_).line; }

uint32_t YamlNode::number() const {
  const YamlTree::Value& value = tree_->values_[place_];
  return value.is_alias ? value.begin : place_;
}

std::string_view YamlNode::text() const {
  const YamlTree::Value& value = tree_->resolved(place_);
  if (value.kind != YamlKind::kScalar) return {};
  return std::string_view(tree_->texts_).substr(value.begin, value.size);
}

size_t YamlNode::size() const {
  const YamlTree::Value& value = tree_->resolved(place_);
  return value.kind == YamlKind::kList || value.kind == YamlKind::kMap ? value.size : 0;
}

YamlNode YamlNode::first() const {
  return size() > 0 ? YamlNode(tree_, tree_->resolved(place_).begin) : YamlNode();
}

YamlNode YamlNode::next() const {
  const uint32_t next = tree_->values_[place_].next;
  return next > 0 ? YamlNode(tree_, next) : YamlNode();
}

}  // namespace mox::internal
