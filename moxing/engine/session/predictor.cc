#include "moxing/engine/session/predictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <mutex>
#include <vector>

#include "moxing/checkpoint/best_checkpoint.h"
#include "moxing/engine/compile/compiled_model.h"
#include "runtime/base/error.h"
#include "runtime/refusals/out_of_memory.h"
#include "runtime/refusals/team_threads.h"

namespace mox {
namespace {

using internal::CompiledModel;
using internal::ModelCompiler;

void require_batch(std::span<const TensorType> components) {
  if (components.empty()) throw InvalidArgument("Predictor: a batch has at least one component, got none");
  for (const TensorType& type : components)
    if (type.shape.rank() < 1 || type.shape[0] < 1 || type.shape[0] != components[0].shape[0])
      throw InvalidArgument(fmt::format(
          "Predictor: the first extent of every component is the number of samples, at least 1 and the "
          "same for all; got {} beside {}",
          to_string(type), to_string(components[0])));
}

}  // namespace

class Predictor::Implementation {
 public:
  Implementation(const std::string& checkpoint, ModelFn model_fn, PredictorOptions options)
      : model_fn_(std::move(model_fn)), options_(std::move(options)), store_(0) {
    if (!model_fn_) throw InvalidArgument("Predictor: the model function is empty");
    if (options_.threads < 1 || options_.kept_batch_sizes < 1)
      throw InvalidArgument(
          fmt::format("Predictor: threads and kept_batch_sizes must be at least 1, they are {} and {}",
                      options_.threads, options_.kept_batch_sizes));
    team_ = Team(options_.threads);
    Communicator alone;
    const auto wanted = internal::arithmetic_of({.precision = options_.precision,
                                                 .conv_algorithm = options_.conv_algorithm,
                                                 .conv_error = options_.conv_error},
                                                "Predictor");
    arithmetic_ = internal::settle_arithmetic(alone, wanted, {}, false);
    const Checkpoint loaded = load_trained(checkpoint, &path_);
    global_step_ = loaded.global_step;
    store_.restore(loaded.variables);
    store_.require_restored(path_);
  }

  OutputBatch predict(std::span<const Array> components) {
    const Use use(*this, components);
    PlanInstance& instance = *use.instance;
    instance.run({.components = components});
    const CompiledModel& model = *use.entry->model;
    try {
      OutputBatch answer;
      for (const auto& [name, tensor] : model.spec.output_info)
        answer.emplace_back(name, instance.fetched(model.fetch_index(name)).clone());
      return answer;
    } catch (...) {
      internal::rethrow_naming_memory(
          [&] {
            return fmt::format("a Predictor's answer to a batch of {} samples", components[0].shape()[0]);
          },
          "give it fewer samples at a time, or put less into output_info");
    }
  }

  void prepare(const std::vector<TensorType>& components) {
    require_batch(components);
    const EnteredTeam entered(team_);
    internal::start_team(team_);
    const std::lock_guard lock(mutex_);
    entry_of(components);
  }

  const std::string& path() const { return path_; }
  int64_t global_step() const { return global_step_; }

 private:
  // A model for one batch size, with the instances that no call is using.
  struct Entry {
    std::unique_ptr<ModelCompiler> compiler;
    CompiledModel* model = nullptr;
    std::vector<std::unique_ptr<PlanInstance>> free;  // guarded by mutex_
  };

  // The calling thread's while it computes.
  struct Use {
    Use(Implementation& owner, std::span<const Array> components) : owner(owner), entered(owner.team_) {
      std::vector<TensorType> types;
      for (const Array& component : components) types.push_back(component.type());
      require_batch(types);
      internal::start_team(owner.team_);
      const std::lock_guard lock(owner.mutex_);
      entry = owner.entry_of(types);
      if (entry->free.empty()) {
        instance = std::make_unique<PlanInstance>(
            entry->model->plan, owner.team_, [&](std::string_view name) { return owner.store_.get(name); });
      } else {
        instance = std::move(entry->free.back());
        entry->free.pop_back();
      }
    }
    ~Use() {
      const std::lock_guard lock(owner.mutex_);
      entry->free.push_back(std::move(instance));
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

    Implementation& owner;
    EnteredTeam entered;
    std::shared_ptr<Entry> entry;
    std::unique_ptr<PlanInstance> instance;
  };

  // With mutex_ held. The one that was used last stands first.
  std::shared_ptr<Entry> entry_of(const std::vector<TensorType>& types) {
    const auto known =
        std::ranges::find_if(entries_, [&](const auto& entry) { return entry->model->signature == types; });
    if (known != entries_.end()) {
      entries_.splice(entries_.begin(), entries_, known);
      return entries_.front();
    }
    auto entry = std::make_shared<Entry>();
    entry->compiler =
        std::make_unique<ModelCompiler>(model_fn_, ModeKeys::PREDICT, store_, team_, arithmetic_);
    entry->model = &entry->compiler->for_signature(types);
    entry->free.push_back(std::move(entry->model->instance));
    entries_.push_front(entry);
    if (entries_.size() > options_.kept_batch_sizes) entries_.pop_back();
    return entry;
  }

  ModelFn model_fn_;
  PredictorOptions options_;
  VariableStore store_;
  Team team_;
  internal::Arithmetic arithmetic_;
  std::string path_;
  int64_t global_step_ = 0;
  std::mutex mutex_;  // guards the entries, and the store while a model is compiled
  std::list<std::shared_ptr<Entry>> entries_;
};

Predictor::Predictor(const std::string& checkpoint, ModelFn model_fn, PredictorOptions options)
    : implementation_(std::make_unique<Implementation>(checkpoint, std::move(model_fn), std::move(options))) {
}
Predictor::~Predictor() = default;
Predictor::Predictor(Predictor&&) noexcept = default;
Predictor& Predictor::operator=(Predictor&&) noexcept = default;

OutputBatch Predictor::predict(std::span<const Array> components) const {
  return implementation_->predict(components);
}
void Predictor::prepare(const std::vector<TensorType>& components) const {
  implementation_->prepare(components);
}
const std::string& Predictor::checkpoint() const { return implementation_->path(); }
int64_t Predictor::global_step() const { return implementation_->global_step(); }

}  // namespace mox
