#include "moxing/engine/step/replicated_step.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "moxing/engine/step/internal/replicated_step_reductions.h"
#include "runtime/base/error.h"
#include "runtime/base/random.h"
#include "runtime/base/resource_limits.h"

namespace mox::internal {
namespace {

// The random numbers of a replica are its own; those of the first are the run's, so that a run with one
// replica is what it would be without any of this.
uint64_t seed_of_replica(uint64_t seed, int64_t replica) {
  return replica == 0 ? seed : mix_hash(seed, static_cast<uint64_t>(replica));
}

std::vector<std::string> after_step_variables_of(const CompiledModel& model) {
  std::vector<std::string> names;
  for (const AfterStepValue& after : model.graph->after_step_values())
    names.push_back(model.graph->spec(after.variable).name);
  return names;
}

// Applies gradients while they are computed.
class PartUpdates : public GradientPartListener {
 public:
  PartUpdates(ParameterUpdater& updater, std::span<const size_t> numbers)
      : updater_(updater), numbers_(numbers) {}
  void expect(size_t index, int64_t first, int64_t count) const override {
    updater_.expect_part(numbers_[index], first, count);
  }
  void take(size_t index, int64_t first, std::span<const float> gradient) const override {
    updater_.apply_part(numbers_[index], first, gradient, 1);
  }

 private:
  ParameterUpdater& updater_;
  std::span<const size_t> numbers_;
};

}  // namespace

ReplicatedStep::ReplicatedStep(const StepEngine& engine, int64_t full_batch, const BucketOptions& buckets,
                               bool in_parts)
    : engine_(engine),
      full_batch_(full_batch),
      bucket_options_(buckets),
      in_parts_(in_parts),
      gate_(engine.scheme, engine.lanes, engine.team, engine.placement.ranks == 1),
      meeting_(engine.placement, engine.ranks),
      timing_(available_cores() <= engine.lanes.size() * engine.team.size()),
      samples_(engine.ranks) {}

ReplicatedStep::~ReplicatedStep() = default;

void ReplicatedStep::prepare(CompiledModel& model) {
  reductions_of(model);
  any_model_ = full_model_ = &model;
  no_batch_.clear();
  if (!engine_.placement.replicas_meet) return;
  try {
    for (const TensorType& type : model.signature) {
      no_batch_.emplace_back(type);
      std::memset(no_batch_.back().data(), 0, no_batch_.back().bytes());
    }
  } catch (const OutOfMemory& error) {
    throw OutOfMemory(
        fmt::format("a batch of zeros, for replicas that have none while others exchange the sums of "
                    "sync_batch_norm: {}: use a smaller batch_size",
                    error.what()));
  }
}

ReplicatedStep::Reductions& ReplicatedStep::reductions_of(CompiledModel& model) {
  auto known = reductions_.find(&model);
  if (known != reductions_.end()) return *known->second;
  if (is_alone() || reductions_.empty())
    return *reductions_.emplace(&model, make_reductions(model)).first->second;
  const auto& first = reductions_.begin()->second;
  if (first->gradient_variables != model.gradient_variables || first->fetch_names != model.fetch_names ||
      first->targets.after_step != after_step_variables_of(model))
    throw FailedPrecondition(
        "model_fn built other variables, log_info or update_after_step for a last, smaller batch than for a "
        "full one; replicas that are summed must be alike");
  if (engine_.placement.replicas_meet) require_equal_exchanges(full_model_->exchanges, model.exchanges);
  return *reductions_.emplace(&model, first).first->second;
}

std::shared_ptr<ReplicatedStep::Reductions> ReplicatedStep::make_reductions(CompiledModel& model) {
  auto made = std::make_shared<Reductions>();
  made->gradient_variables = model.gradient_variables;
  made->fetch_names = model.fetch_names;
  made->fetches = StepValues::kinds_of(model);
  made->targets.parameters = engine_.scheme.declare(model.gradient_variables);
  made->targets.after_step = after_step_variables_of(model);
  if (in_parts_) return made;
  const PlanInstance& instance = *model.instance;
  std::vector<BlockPart> parts;
  for (size_t i = 0; i < model.gradient_variables.size(); ++i) {
    parts.push_back({instance.gradient_offset(i), instance.gradient(i).elements()});
    made->targets.elements.push_back(parts.back().elements);
  }
  made->gradients = std::make_unique<GradientReduction>(
      engine_.placement, engine_.ranks, std::move(parts), std::ssize(model.instance->gradient_block()),
      bucket_options_, [this](size_t index, int64_t first, std::span<float> sum) {
        gate_.take_gradient({index, first, sum});
      });
  if (!is_alone()) reduce_after_step_values(instance, *made);
  return made;
}

void ReplicatedStep::reduce_after_step_values(const PlanInstance& instance, Reductions& reductions) {
  int64_t elements = 0;
  for (size_t i = 0; i < instance.after_step_count(); ++i) {
    const TensorType& type = instance.after_step_value(i).type();
    if (type.dtype != DType::kFloat32)
      throw InvalidArgument(
          fmt::format("the model updates a variable of type {} after each step; with several replicas only "
                      "float32 can be averaged",
                      to_string(type)));
    reductions.after_step_parts.push_back({elements, type.shape.elements()});
    elements += type.shape.elements();
  }
  if (elements == 0) return;
  reductions.after_step_blocks.assign(engine_.placement.lanes, std::vector<float>(elements));
  const BucketOptions whole{.first_bucket_elements = elements,
                            .bucket_elements = elements,
                            .wire = WireType::kFloat32,
                            .first_tag = bucket_options_.first_tag + reductions.gradients->tags(),
                            .name = "moving averages"};
  reductions.after_step = std::make_unique<GradientReduction>(
      engine_.placement, engine_.ranks, reductions.after_step_parts, elements, whole,
      [this](size_t index, int64_t first, std::span<float> sum) {
        gate_.take_after_step_value({index, first, sum});
      });
}

bool ReplicatedStep::begin(std::span<const Batch> batches) {
  batches_ = batches;
  int64_t own_samples = 0;
  models_.assign(engine_.placement.replicas().size(), nullptr);
  for (size_t i = 0; i < batches.size(); ++i) {
    models_[i] = any_model_ = &engine_.compiler.for_batch(batches[i]);
    reductions_of(*models_[i]);
    own_samples += batches[i].size;
  }
  current_ = &reductions_of(*any_model_);
  gate_.begin_step(current_->targets);
  samples_.begin_step(own_samples, [this](int64_t all) { gate_.open(scale_of_sums(all)); });
  if (engine_.placement.ranks == 1 || !batches.empty()) return !batches.empty();
  // Who has no batch does not know whether the others have: the data end for all, or for nobody.
  samples_.wait();
  return samples_.all() > 0;
}

double ReplicatedStep::scale_of_sums(int64_t samples) const {
  return is_alone() || samples == 0 ? 1 : static_cast<double>(full_batch_) / samples;
}

double ReplicatedStep::share_of(const Batch& batch) const {
  return static_cast<double>(batch.size) / full_batch_;
}

// What each replica counts.
void ReplicatedStep::begin_meeting() {
  std::vector<double> shares(models_.size(), 0.0);
  for (size_t local = 0; local < batches_.size(); ++local) shares[local] = share_of(batches_[local]);
  meeting_.begin_step(std::move(shares));
}

StepInputs ReplicatedStep::inputs_of(size_t local) const {
  const int64_t replica = engine_.placement.replicas().first + local;
  return {.components = batches_[local].components,
          .seed = seed_of_replica(moment_.seed, replica),
          .step = moment_.step};
}

void ReplicatedStep::run(const StepMoment& moment) {
  moment_ = moment;
  engine_.scheme.begin_step(moment);
  current_->begin_step();
  values_.begin_step(current_->fetches, batches_, models_.size());
  const StepTiming::Moment begun{StepTiming::Clock::now(), engine_.ranks.work()};
  if (!is_alone()) begin_meeting();
  engine_.lanes.run([&](int lane) {
    try {
      compute_replicas(lane);
      current_->finish_lane(lane);
    } catch (...) {
      meeting_.give_up(std::current_exception());
      current_->abandon_lane(lane);
      throw;
    }
  });
  const StepTiming::Moment computed{StepTiming::Clock::now(), engine_.ranks.work()};
  samples_.wait();
  if (current_->gradients) current_->gradients->finish();
  gate_.finish_gradients();
  if (current_->after_step) current_->after_step->finish();
  gate_.finish_after_step_values();
  if (current_->gradients)
    timing_.add(begun, computed, StepTiming::Clock::now(), current_->gradients->times());
  PlanInstance& instance = *any_model_->instance;
  if (is_alone() && !was_left_out()) instance.take_after_step_values();
  engine_.scheme.end_step({.by_gradients = current_->gradient_variables,
                           .after_step = current_->targets.after_step,
                           .alone = is_alone() ? &instance : nullptr});
  if (is_alone())
    values_.take(instance);
  else
    values_.combine(instance, engine_.ranks);
}

void ReplicatedStep::compute_replicas(int lane) {
  engine_.scheme.prepare_lane(lane);
  const int64_t count = engine_.placement.replicas_per_lane();
  for (int64_t nth = 0; nth < count; ++nth) {
    const size_t local = lane * count + nth;
    if (local < batches_.size()) {
      compute_replica(*models_[local], lane, nth);
    } else {
      if (engine_.placement.replicas_meet) accompany(lane);
      contribute_nothing(lane, nth);
    }
  }
}

// A replica without a batch takes part in the exchanges of the others, where it counts nothing: what it
// computes is of no use.
void ReplicatedStep::accompany(int lane) {
  const EnteredExchange entered(&meeting_.of(lane));
  full_model_->of_lane(lane).run({.components = no_batch_, .seed = moment_.seed, .step = moment_.step});
}

void ReplicatedStep::compute_replica(CompiledModel& model, int lane, int64_t nth) {
  PlanInstance& instance = model.of_lane(lane);
  const size_t local = lane * engine_.placement.replicas_per_lane() + nth;
  const EnteredExchange entered(is_alone() ? nullptr : &meeting_.of(local));
  const StepInputs inputs = inputs_of(local);
  if (in_parts_) return compute_in_parts(instance, inputs);
  const Batch& batch = batches_[local];
  const std::span<float> block = instance.gradient_block();
  instance.run(inputs, [&](size_t i) {
    weigh(block.subspan(instance.gradient_offset(i), instance.gradient(i).elements()), batch);
    current_->gradients->add(lane, nth, i, block);
  });
  if (is_alone()) return;
  values_.keep(local, instance);
  if (current_->after_step) add_after_step_values(instance, batch, lane, nth);
}

void ReplicatedStep::compute_in_parts(PlanInstance& instance, const StepInputs& inputs) {
  ParameterUpdater& updater = engine_.scheme.updater();
  const std::vector<size_t>& parameters = current_->targets.parameters;
  const auto whole = [&](size_t i) {
    updater.apply(parameters[i], instance.gradient(i).values<float>(), 1, engine_.team);
  };
  instance.run(inputs, whole, PartUpdates(updater, parameters));
}

void ReplicatedStep::add_after_step_values(const PlanInstance& instance, const Batch& batch, int lane,
                                           int64_t nth) {
  const std::span<float> block = current_->after_step_blocks[lane];
  for (size_t i = 0; i < current_->after_step_parts.size(); ++i) {
    const BlockPart& part = current_->after_step_parts[i];
    const std::span<float> values = block.subspan(part.offset, part.elements);
    std::ranges::copy(instance.after_step_value(i).values<float>(), values.begin());
    weigh(values, batch);
    current_->after_step->add(lane, nth, i, block);
  }
}

// So that a sum over replicas is one over their samples.
void ReplicatedStep::weigh(std::span<float> values, const Batch& batch) const {
  if (is_alone() || batch.size == full_batch_) return;
  const float share = share_of(batch);
  for (float& value : values) value *= share;
}

void ReplicatedStep::contribute_nothing(int lane, int64_t nth) {
  const std::span<float> block = any_model_->of_lane(lane).gradient_block();
  std::ranges::fill(block, 0.0F);
  for (size_t i = 0; i < current_->targets.parameters.size(); ++i)
    current_->gradients->add(lane, nth, i, block);
  if (!current_->after_step) return;
  const std::span<float> values = current_->after_step_blocks[lane];
  std::ranges::fill(values, 0.0F);
  for (size_t i = 0; i < current_->after_step_parts.size(); ++i)
    current_->after_step->add(lane, nth, i, values);
}

const Array& ReplicatedStep::array(std::string_view name) const {
  return values_.of_fetch(any_model_->fetch_index(name));
}

}  // namespace mox::internal
