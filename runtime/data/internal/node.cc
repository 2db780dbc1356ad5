#include "runtime/data/internal/node.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/error.h"

namespace mox::data::internal {

std::unique_ptr<Stream> Compiled::take_stream() {
  if (stream) return std::move(stream);
  return std::make_unique<IndexedStream>(indexed);
}

const std::vector<TensorType>& Node::signature() const {
  std::call_once(signature_once_, [this] { signature_ = infer_signature(); });
  return signature_;
}

std::string Node::label() const {
  const std::string text = describe();
  return fmt::format("{} ({})", text.substr(0, text.find('(')), to_string(where_));
}

std::vector<std::string> Node::stages() const {
  std::vector<std::string> result;
  append_stages(&result);
  return result;
}

void Node::append_stages(std::vector<std::string>* stages) const {
  for (const auto& child : children()) child->append_stages(stages);
  stages->push_back(describe());
}

bool Node::order_changes() const {
  for (const auto& child : children())
    if (child->order_changes()) return true;
  return false;
}

const Node* Node::selection_that_changes() const {
  for (const auto& child : children())
    if (const Node* found = child->selection_that_changes()) return found;
  return nullptr;
}

bool Node::order_follows_seed() const {
  return std::ranges::any_of(children(), [](const NodePtr& child) { return child->order_follows_seed(); });
}

void Node::append_contents(std::vector<std::string>* lines) const {
  for (const NodePtr& child : children()) child->append_contents(lines);
}

void Node::append_sources(std::vector<const RandomAccessSource*>* sources) const {
  for (const NodePtr& child : children()) child->append_sources(sources);
}

int64_t Node::requested_prefetch() const {
  int64_t most = 0;
  for (const auto& child : children()) most = std::max(most, child->requested_prefetch());
  return most;
}

void Node::refuse(const std::string& text) const {
  throw InvalidArgument(fmt::format("{}: {}", label(), text));
}

Element zero_element(const std::vector<TensorType>& signature) {
  Element element;
  for (const auto& type : signature) element.emplace_back(type);
  return element;
}

}  // namespace mox::data::internal
