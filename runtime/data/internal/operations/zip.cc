// zip: elements side by side, their components concatenated.
#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/data/internal/node.h"

namespace mox::data::internal {
namespace {

template <typename Part>
int total_arity(const std::vector<Part>& parts) {
  int total = 0;
  for (const auto& part : parts) total += part->arity();
  return total;
}

uint64_t shortest(const std::vector<std::shared_ptr<const Indexed>>& parts) {
  uint64_t size = kEndless;
  for (const auto& part : parts) size = std::min(size, part->size());
  return size;
}

class ZipIndexed : public Indexed {
 public:
  explicit ZipIndexed(std::vector<std::shared_ptr<const Indexed>> parts)
      : Indexed(shortest(parts), total_arity(parts)), parts_(std::move(parts)) {}

  void resolve(uint64_t epoch, uint64_t first, uint64_t count, Leaf* out, size_t stride) const override {
    for (const auto& part : parts_) {
      part->resolve(epoch, first, count, out, stride);
      out += part->arity();
    }
  }

 private:
  std::vector<std::shared_ptr<const Indexed>> parts_;
};

class ZipStream : public Stream {
 public:
  explicit ZipStream(std::vector<std::unique_ptr<Stream>> parts)
      : Stream(total_arity(parts)), parts_(std::move(parts)) {}

  void reset(uint64_t epoch) override {
    for (auto& part : parts_) part->reset(epoch);
    ended_ = false;
  }

  bool next(Leaf* out) override {
    if (ended_) return false;
    for (auto& part : parts_) {
      if (!part->next(out)) {
        ended_ = true;
        return false;
      }
      out += part->arity();
    }
    return true;
  }

  void save(std::vector<uint64_t>* state) const override {
    state->push_back(ended_);
    for (const auto& part : parts_) part->save(state);
  }

  void restore(StateReader& state) override {
    ended_ = state.take() != 0;
    for (auto& part : parts_) part->restore(state);
  }

 private:
  std::vector<std::unique_ptr<Stream>> parts_;
  bool ended_ = false;
};

ElementType concatenated(const std::vector<std::shared_ptr<const ElementEvaluator>>& parts) {
  ElementType type;
  for (const auto& part : parts) {
    const auto& more = part->type().components;
    type.components.insert(type.components.end(), more.begin(), more.end());
    type.rows_vary |= part->type().rows_vary;
  }
  return type;
}

class ZipEvaluator : public ElementEvaluator {
 public:
  explicit ZipEvaluator(std::vector<std::shared_ptr<const ElementEvaluator>> parts)
      : ElementEvaluator(concatenated(parts), total_arity(parts)), parts_(std::move(parts)) {}

  Element make(const Leaf* leaves) const override {
    Element element;
    for (const auto& part : parts_) {
      Element more = part->make(leaves);
      std::move(more.begin(), more.end(), std::back_inserter(element));
      leaves += part->arity();
    }
    return element;
  }

  void write(const Leaf* leaves, std::span<std::byte* const> destinations) const override {
    for (const auto& part : parts_) {
      const size_t components = part->type().components.size();
      part->write(leaves, destinations.first(components));
      destinations = destinations.subspan(components);
      leaves += part->arity();
    }
  }

  Carried carried() const override {
    Carried all{0, true};
    for (const auto& part : parts_) {
      const Carried more = part->carried();
      all = {all.bytes + more.bytes, all.is_given && more.is_given};
    }
    return all;
  }

  uint64_t pass_of(const Leaf* leaves) const override { return parts_[0]->pass_of(leaves); }

  // Those of the first part that knows any.
  void append_names(const Leaf* leaves, std::vector<std::string>* names) const override {
    std::vector<std::string> of_part, first;
    for (const auto& part : parts_) {
      of_part.clear();
      part->append_names(leaves, &of_part);
      if (first.empty()) first = of_part;
      if (std::any_of(of_part.begin(), of_part.end(), [](const auto& name) { return !name.empty(); })) break;
      leaves += part->arity();
      of_part.clear();
    }
    if (of_part.empty()) of_part = std::move(first);
    std::move(of_part.begin(), of_part.end(), std::back_inserter(*names));
  }

  void will_read(const Leaf* leaves) const override {
    for (const auto& part : parts_) {
      part->will_read(leaves);
      leaves += part->arity();
    }
  }

  bool view(const Leaf* leaves, size_t stride, size_t count, Element* rows) const override {
    for (const auto& part : parts_) {
      if (!part->view(leaves, stride, count, rows)) return false;
      leaves += part->arity();
    }
    return true;
  }

  bool has_views() const override {
    return std::all_of(parts_.begin(), parts_.end(), [](const auto& part) { return part->has_views(); });
  }

 private:
  std::vector<std::shared_ptr<const ElementEvaluator>> parts_;
};

class ZipNode : public Node {
 public:
  ZipNode(std::vector<NodePtr> parts, SourceLocation where) : Node(where), parts_(std::move(parts)) {
    if (parts_.empty()) refuse("at least one data set is needed, none was given");
  }

  std::span<const NodePtr> children() const override { return parts_; }
  std::string describe() const override { return fmt::format("zip({})", parts_.size()); }

  int64_t find_cardinality() const override {
    int64_t least = Dataset::kInfinite;
    for (const auto& part : parts_) {
      const int64_t count = part->cardinality();
      if (count == 0) return 0;
      if (least == Dataset::kUnknown || count == Dataset::kUnknown)
        least = Dataset::kUnknown;
      else if (count != Dataset::kInfinite)
        least = least == Dataset::kInfinite ? count : std::min(least, count);
    }
    return least;
  }

  // Of data without repeats, the shortest; of repeated data, the common length of a pass if they have one.
  int64_t find_epoch_size() const override {
    if (cardinality() == Dataset::kUnknown) return Dataset::kUnknown;
    const int64_t first = parts_[0]->epoch_size();
    if (std::all_of(parts_.begin(), parts_.end(),
                    [&](const auto& part) { return part->epoch_size() == first; }))
      return first;
    const bool repeated = std::any_of(parts_.begin(), parts_.end(), [](const auto& part) {
      return part->cardinality() != part->epoch_size();
    });
    return repeated ? Dataset::kUnknown : cardinality();
  }

  bool find_rows_vary() const override {
    return std::any_of(parts_.begin(), parts_.end(), [](const auto& part) { return part->rows_vary(); });
  }

  Compiled compile(CompileContext& context) const override {
    std::call_once(warned_, [&] {  // not again for each evaluation's pipeline
      warn_of_separate_orders();
      warn_of_lengths();
    });
    std::vector<Compiled> compiled;
    std::vector<std::shared_ptr<const ElementEvaluator>> evaluators;
    const uint64_t outer = context.part;
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (i > 0) context.part = mix_hash(outer, i);
      compiled.push_back(parts_[i]->compile(context));
      evaluators.push_back(compiled.back().evaluator);
    }
    context.part = outer;
    Compiled result;
    result.evaluator = std::make_shared<ZipEvaluator>(std::move(evaluators));
    if (std::all_of(compiled.begin(), compiled.end(),
                    [](const Compiled& part) { return part.indexed != nullptr; })) {
      std::vector<std::shared_ptr<const Indexed>> parts;
      for (auto& part : compiled) parts.push_back(part.indexed);
      result.indexed = std::make_shared<ZipIndexed>(std::move(parts));
    } else {
      std::vector<std::unique_ptr<Stream>> parts;
      for (auto& part : compiled) parts.push_back(part.take_stream());
      result.stream = std::make_unique<ZipStream>(std::move(parts));
    }
    return result;
  }

  Element probe() const override {
    Element element;
    for (const auto& part : parts_) {
      Element more = part->probe();
      std::move(more.begin(), more.end(), std::back_inserter(element));
    }
    return element;
  }

 protected:
  std::vector<TensorType> infer_signature() const override {
    std::vector<TensorType> types;
    for (const auto& part : parts_)
      types.insert(types.end(), part->signature().begin(), part->signature().end());
    return types;
  }

 private:
  // Images and labels that are shuffled each for itself go on as pairs that do not belong together, from
  // which nothing can be learnt. Parts that are alike, as the pictures of two kinds, may be meant so.
  void warn_of_separate_orders() const {
    const auto are_labels = [](const NodePtr& part) {
      return std::ranges::all_of(part->signature(),
                                 [](const TensorType& type) { return type.shape.rank() == 0; });
    };
    const auto shuffled = std::ranges::count_if(parts_, &Node::order_changes);
    const auto labels = std::ranges::count_if(parts_, are_labels);
    if (shuffled < 2 || labels == 0 || labels == std::ssize(parts_)) return;
    log_warning(fmt::format(
        "{}: {} of its {} data sets are shuffled, each in an order of its own, so that labels come to other "
        "samples than theirs. Shuffle what zip gives",
        label(), shuffled, parts_.size()));
  }

  void warn_of_lengths() const {
    const auto [least, most] = std::ranges::minmax(parts_, {}, &Node::cardinality);
    if (least->cardinality() < 0 || least->cardinality() == most->cardinality()) return;
    log_warning(fmt::format("{}: one data set has {} elements, another {}: it ends with the shorter one",
                            label(), least->cardinality(), most->cardinality()));
  }

  std::vector<NodePtr> parts_;
  mutable std::once_flag warned_;
};

}  // namespace

NodePtr make_zip(std::vector<NodePtr> children, SourceLocation where) {
  return make_node<ZipNode>(std::move(children), where);
}

}  // namespace mox::data::internal
