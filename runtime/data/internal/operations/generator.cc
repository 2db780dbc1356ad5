// Generated elements: a pass is started by the user's factory and can only be walked from its start.
#include <fmt/format.h>

#include "runtime/base/error.h"
#include "runtime/data/internal/node.h"
#include "runtime/data/internal/sample_error.h"

namespace mox::data::internal {
namespace {

using Factory = std::function<Generator(const PassContext&)>;

class GeneratorStream : public Stream {
 public:
  GeneratorStream(Factory factory, ElementType type, int64_t size, std::string label,
                  std::shared_ptr<Execution> execution, uint64_t seed)
      : Stream(1),
        factory_(std::move(factory)),
        type_(std::move(type)),
        size_(size),
        label_(std::move(label)),
        execution_(std::move(execution)),
        seed_(seed) {}

  void reset(uint64_t epoch) override {
    epoch_ = epoch;
    produced_ = 0;
    generator_ = nullptr;
    ended_ = false;
  }

  bool next(Leaf* out) override {
    if (ended_) return false;
    *out = {produced_, epoch_, nullptr};
    auto payload = std::make_shared<Payload>();
    try {
      if (!generator_) {
        generator_ = factory_(PassContext{seed_, epoch_});
        if (!generator_) throw InvalidArgument("the factory returned an empty generator");
      }
      if (!generator_(&payload->value)) {
        require_size(size_ == Dataset::kUnknown || static_cast<int64_t>(produced_) == size_, "ended after");
        ended_ = true;
        generator_ = nullptr;
        return false;
      }
      require_size(size_ < 0 || static_cast<int64_t>(produced_) < size_, "goes on after");
      check_element(type_, payload->value, "the generator");
    } catch (...) {
      rethrow_with_sample(label_, *out);
    }
    out->payload = std::move(payload);
    ++produced_;
    return true;
  }

  void save(std::vector<uint64_t>* state) const override {
    state->push_back(epoch_);
    state->push_back(produced_);
  }

  void restore(StateReader& state) override {
    reset(state.take());
    const uint64_t produced = state.take();
    Leaf leaf;
    while (produced_ < produced) {
      execution_->throw_if_stopped();
      if (!next(&leaf))
        throw DataError(
            fmt::format("{}: the data cursor is at element {} of pass {}, but the generator ended after {}",
                        label_, produced, epoch_, produced_));
    }
  }

 private:
  void require_size(bool as_said, const char* what) const {
    if (as_said) return;
    throw DataError(fmt::format(
        "pass {} {} {} elements, but from_generator was told {}; give it the number of "
        "elements of a pass, or none",
        epoch_, what, produced_, size_ == Dataset::kInfinite ? "that it has no end" : std::to_string(size_)));
  }

  Factory factory_;
  ElementType type_;
  int64_t size_;  // elements of a pass, Dataset::kInfinite or kUnknown
  std::string label_;
  std::shared_ptr<Execution> execution_;
  uint64_t seed_;
  Generator generator_;
  uint64_t epoch_ = 0, produced_ = 0;
  bool ended_ = false;
};

class GeneratorNode : public Node {
 public:
  GeneratorNode(std::vector<TensorType> signature, Factory factory, int64_t size, SourceLocation where)
      : Node(where), types_(std::move(signature)), factory_(std::move(factory)), size_(size) {
    if (size < Dataset::kUnknown)
      refuse(fmt::format("the number of elements must not be negative, it is {}", size));
    if (types_.empty()) refuse("the signature has no components");
    if (!factory_) refuse("the factory is empty");
  }

  std::span<const NodePtr> children() const override { return {}; }
  std::string describe() const override { return fmt::format("from_generator({})", types_text(types_)); }
  int64_t find_cardinality() const override { return size_; }
  int64_t find_epoch_size() const override { return size_ == Dataset::kInfinite ? Dataset::kUnknown : size_; }
  bool find_rows_vary() const override { return false; }

  Compiled compile(CompileContext& context) const override {
    const uint64_t seed = context.stage_seed(context.new_stage());
    return {.indexed = nullptr,
            .stream = std::make_unique<GeneratorStream>(factory_, element_type(), size_, label(),
                                                        context.execution, seed),
            .evaluator = std::make_shared<ValueEvaluator>(element_type())};
  }

  Element probe() const override {
    Element element;
    Generator generator = factory_(PassContext{});
    if (!generator || !generator(&element)) return zero_element(types_);
    check_element(element_type(), element, label());
    return element;
  }

 protected:
  std::vector<TensorType> infer_signature() const override { return types_; }

 private:
  std::vector<TensorType> types_;
  Factory factory_;
  int64_t size_;
};

}  // namespace

NodePtr make_generator(std::vector<TensorType> signature, Factory factory, int64_t size,
                       SourceLocation where) {
  return make_node<GeneratorNode>(std::move(signature), std::move(factory), size, where);
}

}  // namespace mox::data::internal
