// Random-access sources: position i of every pass is sample i.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <mutex>

#include "runtime/base/error.h"
#include "runtime/data/internal/node.h"
#include "runtime/data/internal/sample_error.h"

namespace mox::data::internal {
namespace {

class SourceIndexed : public Indexed {
 public:
  explicit SourceIndexed(uint64_t size) : Indexed(size, 1) {}
  void resolve(uint64_t epoch, uint64_t first, uint64_t count, Leaf* out, size_t stride) const override {
    for (uint64_t i = 0; i < count; ++i, out += stride) {
      out->index = first + i;
      out->epoch = epoch;
      if (out->payload) out->payload.reset();
    }
  }
};

class SourceEvaluator : public ElementEvaluator {
 public:
  SourceEvaluator(ElementType type, std::shared_ptr<const RandomAccessSource> source, std::string label,
                  std::shared_ptr<Execution> execution, uint64_t seed)
      : ElementEvaluator(std::move(type), 1),
        source_(std::move(source)),
        label_(std::move(label)),
        execution_(std::move(execution)),
        seed_(seed) {
    Element probe;
    has_views_ = source_->size() > 0 && source_->view(0, 1, &probe);
  }

  Element make(const Leaf* leaves) const override {
    Element rows;
    if (has_views_ && source_->view(leaves->index, 1, &rows)) {
      for (size_t c = 0; c < rows.size(); ++c) rows[c] = rows[c].reshaped(type().components[c].shape);
      return rows;
    }
    std::vector<std::byte*> destinations;
    for (const auto& component : type().components) {
      rows.emplace_back(component, execution_->pool.take(component.bytes()));
      destinations.push_back(rows.back().data());
    }
    write(leaves, destinations);
    return rows;
  }

  void write(const Leaf* leaves, std::span<std::byte* const> destinations) const override {
    try {
      source_->read(leaves->index, SampleContext{seed_, leaves->epoch, leaves->index}, destinations);
    } catch (...) {
      rethrow_with_sample(label_, *leaves);
    }
  }

  void append_names(const Leaf* leaves, std::vector<std::string>* names) const override {
    names->push_back(source_->name(leaves->index));
  }

  void will_read(const Leaf* leaves) const override { source_->will_read(leaves->index); }

  bool view(const Leaf* leaves, size_t stride, size_t count, Element* rows) const override {
    if (!has_views_) return false;
    for (size_t i = 1; i < count; ++i)
      if (leaves[i * stride].index != leaves->index + i) return false;
    Element views;
    if (!source_->view(leaves->index, count, &views)) return false;
    rows->insert(rows->end(), views.begin(), views.end());
    return true;
  }

  bool has_views() const override { return has_views_; }

 private:
  std::shared_ptr<const RandomAccessSource> source_;
  std::string label_;
  std::shared_ptr<Execution> execution_;
  uint64_t seed_;
  bool has_views_;
};

constexpr int64_t kSampledContents = 16;
constexpr size_t kMostContents = 256;  // of all sources of a data set together

std::vector<std::string> sample_contents(const RandomAccessSource& source) {
  std::vector<int64_t> indices;
  const int64_t size = source.size();
  for (int64_t i = 0; i < std::min(size, kSampledContents); ++i) {
    // The first and the last one, and others in between; all of a few.
    const uint64_t drawn = mix_hash(static_cast<uint64_t>(i), static_cast<uint64_t>(size));
    indices.push_back(size <= kSampledContents || i == 0 ? i
                      : i == 1                           ? size - 1
                               : static_cast<int64_t>(drawn % static_cast<uint64_t>(size)));
  }
  std::ranges::sort(indices);
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  std::vector<std::string> lines;
  for (const int64_t index : indices) {
    std::string content;
    try {
      content = fmt::format("{:08x}", source.content_checksum(index));
    } catch (const Error&) {
      content = "cannot be read";  // said by whoever needs it
    }
    const std::string name = std::filesystem::path(source.name(index)).filename().string();
    lines.push_back(fmt::format("sample {}{} of {}: {}", index, name.empty() ? "" : " ('" + name + "')",
                                source.describe(), content));
  }
  return lines;
}

class SourceNode : public Node {
 public:
  SourceNode(std::shared_ptr<const RandomAccessSource> source, SourceLocation where)
      : Node(where), source_(std::move(source)) {
    if (!source_)
      throw InvalidArgument(fmt::format("from_source ({}): the source is null", to_string(where)));
    if (source_->size() < 0) refuse(fmt::format("the source has a negative size, {}", source_->size()));
    if (source_->signature().empty()) refuse("the source's samples have no components");
  }

  std::span<const NodePtr> children() const override { return {}; }
  std::string describe() const override {
    return fmt::format("{} x {}", source_->describe(), types_text(source_->signature()));
  }
  int64_t find_cardinality() const override { return source_->size(); }
  int64_t find_epoch_size() const override { return source_->size(); }
  bool find_rows_vary() const override { return false; }

  Compiled compile(CompileContext& context) const override {
    const uint64_t seed = context.stage_seed(context.new_stage());
    return {.indexed = std::make_shared<SourceIndexed>(source_->size()),
            .stream = nullptr,
            .evaluator =
                std::make_shared<SourceEvaluator>(element_type(), source_, label(), context.execution, seed)};
  }

  void append_own_contents(std::vector<std::string>* lines) const override {
    if (lines->size() >= kMostContents) return;
    std::call_once(contents_once_, [&] { contents_ = sample_contents(*source_); });
    const size_t room = kMostContents - std::min(lines->size(), kMostContents);
    lines->insert(lines->end(), contents_.begin(), contents_.begin() + std::min(room, contents_.size()));
  }

  const RandomAccessSource* source() const override { return source_.get(); }

  Element probe() const override {
    Element element = zero_element(signature());
    if (source_->size() == 0) return element;
    std::vector<std::byte*> destinations;
    for (auto& array : element) destinations.push_back(array.data());
    source_->read(0, SampleContext{}, destinations);
    return element;
  }

 protected:
  std::vector<TensorType> infer_signature() const override { return source_->signature(); }

 private:
  std::shared_ptr<const RandomAccessSource> source_;
  mutable std::once_flag contents_once_;
  mutable std::vector<std::string> contents_;
};

}  // namespace

NodePtr make_source(std::shared_ptr<const RandomAccessSource> source, SourceLocation where) {
  return make_node<SourceNode>(std::move(source), where);
}

}  // namespace mox::data::internal
