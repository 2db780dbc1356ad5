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

void Node::know_signature(std::vector<TensorType> signature) const {
  std::call_once(signature_once_, [&] { signature_ = std::move(signature); });
}

std::string Node::label() const {
  const std::string text = describe();
  return fmt::format("{} ({})", text.substr(0, text.find('(')), to_string(where_));
}

template <class Visit>
void Node::visit_tree(const Visit& visit) const {
  struct Place {
    const Node* node;
    bool in_later_part = false;
    size_t next_child = 0;
  };
  std::vector<Place> path{{this}};
  while (!path.empty()) {
    Place& place = path.back();
    const auto children = place.node->children();
    if (place.next_child < children.size()) {
      const size_t number = place.next_child++;
      path.push_back({children[number].get(), place.in_later_part || number > 0});
    } else {
      visit(*place.node, place.in_later_part);
      path.pop_back();
    }
  }
}

std::vector<std::string> Node::stages() const {
  std::vector<std::string> result;
  visit_tree([&](const Node& node, bool in_later_part) {
    if (!node.is_stage()) return;
    result.push_back(node.describe());
    // Its order was once that of the part: a position that was saved then is one of another order.
    if (in_later_part && node.fixes_order()) result.back() += " in all parts";
  });
  return result;
}

std::vector<std::string> Node::contents() const {
  std::vector<std::string> lines;
  visit_tree([&](const Node& node, bool) { node.append_own_contents(&lines); });
  return lines;
}

std::vector<const RandomAccessSource*> Node::sources() const {
  std::vector<const RandomAccessSource*> result;
  visit_tree([&](const Node& node, bool) {
    if (const RandomAccessSource* source = node.source()) result.push_back(source);
  });
  return result;
}

// What is one pass as a whole has nothing to be mixed with, whatever it is made of.
bool Node::find_mixes_passes() const {
  return cardinality_ != epoch_size_ &&
         std::ranges::any_of(children(), [](const NodePtr& child) { return child->mixes_passes(); });
}

bool Node::find_order_changes() const {
  return std::ranges::any_of(children(), [](const NodePtr& child) { return child->order_changes(); });
}

const Node* Node::find_selection_that_changes() const {
  for (const NodePtr& child : children())
    if (const Node* found = child->selection_that_changes()) return found;
  return nullptr;
}

bool Node::find_order_follows_seed() const {
  return std::ranges::any_of(children(), [](const NodePtr& child) { return child->order_follows_seed(); });
}

int64_t Node::find_requested_prefetch() const {
  int64_t most = 0;
  for (const NodePtr& child : children()) most = std::max(most, child->requested_prefetch());
  return most;
}

int Node::find_levels() const {
  int most = 0;
  for (const NodePtr& child : children()) most = std::max(most, child->levels());
  return most + 1;
}

void Node::settle() {
  levels_ = find_levels();
  if (levels_ > kMostLevels)
    refuse(
        fmt::format("more than {} operations above one another (maps that follow one another count as one); "
                    "put the work of several into one function, or give several data sets side by side to "
                    "one zip or interleave",
                    kMostLevels));
  cardinality_ = find_cardinality();
  epoch_size_ = find_epoch_size();
  rows_vary_ = find_rows_vary();
  mixes_passes_ = find_mixes_passes();
  order_changes_ = find_order_changes();
  selection_that_changes_ = find_selection_that_changes();
  order_follows_seed_ = find_order_follows_seed();
  requested_prefetch_ = find_requested_prefetch();
}

void Node::refuse(const std::string& text) const {
  throw InvalidArgument(fmt::format("{}: {}", label(), text));
}

// A node that is destroyed by another's destruction waits for the end of that.
UnaryNode::~UnaryNode() {
  thread_local std::vector<NodePtr>* waiting = nullptr;
  if (waiting) {
    waiting->push_back(std::move(child_));
    return;
  }
  std::vector<NodePtr> chain;
  chain.push_back(std::move(child_));
  waiting = &chain;
  while (!chain.empty()) {
    const NodePtr next = std::move(chain.back());
    chain.pop_back();
  }
  waiting = nullptr;
}

Element zero_element(const std::vector<TensorType>& signature) {
  Element element;
  for (const auto& type : signature) element.emplace_back(type);
  return element;
}

}  // namespace mox::data::internal
