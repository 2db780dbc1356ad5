#include "moxing/engine/step/replicated_step.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "moxing/engine/step/internal/replicated_step_reductions.h"
#include "runtime/base/error.h"
#include "runtime/base/random.h"

namespace mox::internal {
namespace {

constexpr int kSamplesTag = 2;

// The random numbers of a replica are its own; those of the first are the run's, so that a run with one
// replica is what it would be without any of this.
uint64_t seed_of_replica(uint64_t seed, int64_t replica) {
  return replica == 0 ? seed : mix_hash(seed, static_cast<uint64_t>(replica));
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

ReplicatedStep::ReplicatedStep(const Placement& placement, Communicator& communicator,
                               ModelCompiler& compiler, const StepVariables& variables, LaneThreads& lanes,
                               const Team& team, int64_t full_batch, const BucketOptions& buckets,
                               bool in_parts)
    : placement_(placement),
      communicator_(communicator),
      compiler_(compiler),
      updater_(*variables.host),
      lane_updaters_(variables.of_lanes),
      copies_(*variables.copies),
      lanes_(lanes),
      team_(team),
      full_batch_(full_batch),
      bucket_options_(buckets),
      in_parts_(in_parts),
      meeting_(placement, communicator),
      timing_(available_cores() <= lanes.size() * team.size()) {}

ReplicatedStep::~ReplicatedStep() = default;

void ReplicatedStep::prepare(CompiledModel& model) {
  reductions_of(model);
  any_model_ = full_model_ = &model;
  no_batch_.clear();
  for (const TensorType& type : model.signature) {
    no_batch_.emplace_back(type);
    std::memset(no_batch_.back().data(), 0, no_batch_.back().bytes());
  }
}

ReplicatedStep::Reductions& ReplicatedStep::reductions_of(CompiledModel& model) {
  auto known = reductions_.find(&model);
  if (known != reductions_.end()) return *known->second;
  if (placement_.logical_replicas > 1 && !reductions_.empty()) {
    const auto& first = reductions_.begin()->second;
    if (first->gradient_variables != model.gradient_variables || first->fetch_names != model.fetch_names)
      throw FailedPrecondition(
          "model_fn built other variables or log_info for a last, smaller batch than for a full one; "
          "replicas that are summed must "
          "be alike");
    return *reductions_.emplace(&model, first).first->second;
  }
  auto made = std::make_shared<Reductions>();
  made->gradient_variables = model.gradient_variables;
  made->fetch_names = model.fetch_names;
  made->parameters = updater_.declare(model.gradient_variables);
  for (ParameterUpdater* updater : lane_updaters_) updater->declare(model.gradient_variables);
  for (const auto& update : model.graph->updates())
    made->updated_variables.push_back(model.graph->spec(update.variable).name);
  PlanInstance& instance = *model.instance;
  for (size_t f = 0; f < model.fetch_names.size(); ++f) {
    made->is_output.push_back(std::ranges::any_of(
        model.spec.output_info, [&](const auto& entry) { return entry.first == model.fetch_names[f]; }));
    made->is_number.push_back(!made->is_output.back() && instance.fetched(f).elements() == 1);
  }
  if (in_parts_) return *reductions_.emplace(&model, std::move(made)).first->second;
  std::vector<BlockPart> parts;
  for (size_t i = 0; i < model.gradient_variables.size(); ++i) {
    parts.push_back({instance.gradient_offset(i), instance.gradient(i).elements()});
    made->gradient_elements.push_back(parts.back().elements);
  }
  made->gradients = std::make_unique<GradientReduction>(
      placement_, communicator_, std::move(parts), static_cast<int64_t>(instance.gradient_block().size()),
      bucket_options_, [this](size_t index, int64_t first, std::span<float> sum) {
        take_gradient({index, first, sum});
      });

  if (placement_.logical_replicas > 1) {
    int64_t elements = 0;
    for (size_t i = 0; i < instance.update_count(); ++i) {
      const TensorType& type = instance.update_value(i).type();
      if (type.dtype != DType::kFloat32)
        throw InvalidArgument(
            fmt::format("the model updates a variable of type {} after each step; with several replicas only "
                        "float32 can be averaged",
                        to_string(type)));
      made->update_parts.push_back({elements, type.shape.elements()});
      elements += type.shape.elements();
    }
    if (elements > 0) {
      made->update_blocks.assign(static_cast<size_t>(placement_.lanes),
                                 std::vector<float>(static_cast<size_t>(elements)));
      BucketOptions whole{.first_bucket_elements = elements,
                          .bucket_elements = elements,
                          .wire = WireType::kFloat32,
                          .first_tag = bucket_options_.first_tag + made->gradients->tags(),
                          .name = "moving averages"};
      made->updates =
          std::make_unique<GradientReduction>(placement_, communicator_, made->update_parts, elements, whole,
                                              [this](size_t index, int64_t first, std::span<float> sum) {
                                                take_update({index, first, sum});
                                              });
    }
  }
  return *reductions_.emplace(&model, std::move(made)).first->second;
}

bool ReplicatedStep::begin(std::span<const Batch> batches) {
  batches_ = batches;
  own_samples_ = 0;
  models_.assign(static_cast<size_t>(placement_.replicas().size()), nullptr);
  for (size_t i = 0; i < batches.size(); ++i) {
    models_[i] = any_model_ = &compiler_.for_batch(batches[i]);
    reductions_of(*models_[i]);
    own_samples_ += batches[i].size;
  }
  current_ = &reductions_of(*any_model_);
  sums_.assign(current_->parameters.size(), {});
  elements_left_ = current_->gradient_elements;
  scale_is_known_ = was_left_out_ = false;
  updates_may_be_taken_ = !updater_.may_leave_out();

  if (placement_.ranks == 1) {
    know_samples(own_samples_);
    return !batches.empty();
  }
  // Who has no batch does not know whether the others have: the data end for all, or for nobody.
  told_samples_.resize(static_cast<size_t>(placement_.ranks));
  telling_ = communicator_.start(
      make_allgather(std::as_bytes(std::span(&own_samples_, 1)), &told_samples_, kSamplesTag), "samples",
      [this] {
        int64_t all = 0;
        for (const std::string& text : told_samples_) {
          int64_t samples = 0;
          std::memcpy(&samples, text.data(), sizeof samples);
          all += samples;
        }
        know_samples(all);
      });
  if (!batches.empty()) return true;
  communicator_.wait(telling_);
  return samples_ > 0;
}

// What each replica counts.
void ReplicatedStep::begin_meeting() {
  std::vector<double> shares(models_.size(), 0.0);
  for (size_t local = 0; local < batches_.size(); ++local) shares[local] = share_of(batches_[local]);
  meeting_.begin_step(std::move(shares));
}

void ReplicatedStep::run(const StepMoment& moment) {
  moment_ = moment;
  const auto begin_step = [&](ParameterUpdater& updater) {
    updater.begin_step(moment.step, updater_.loss_scale().skipped_steps(), moment.steps_per_epoch,
                       moment.learning_rate_multiplier);
  };
  begin_step(updater_);
  for (ParameterUpdater* updater : lane_updaters_) begin_step(*updater);
  if (current_->gradients) current_->gradients->begin_step();
  if (current_->updates) current_->updates->begin_step();
  numbers_.assign(models_.size(), {});
  arrays_.assign(models_.size(), {});
  const StepTiming::Moment begun{StepTiming::Clock::now(), communicator_.work()};
  if (placement_.logical_replicas > 1) begin_meeting();
  lanes_.run([&](int lane) {
    const auto each_reduction = [&](auto visit) {
      for (GradientReduction* reduction : {current_->gradients.get(), current_->updates.get()})
        if (reduction) visit(*reduction);
    };
    try {
      compute_replicas(moment, lane);
      each_reduction([&](GradientReduction& reduction) { reduction.finish_lane(lane); });
    } catch (...) {
      meeting_.give_up(std::current_exception());
      each_reduction([&](GradientReduction& reduction) { reduction.abandon_lane(lane); });
      throw;
    }
  });
  const StepTiming::Moment computed{StepTiming::Clock::now(), communicator_.work()};
  if (placement_.ranks > 1) communicator_.wait(telling_);
  if (current_->gradients) current_->gradients->finish();
  if (applies_at_the_end()) apply_together();
  if (current_->updates) current_->updates->finish();
  take_waiting_updates();
  if (current_->gradients)
    timing_.add(begun, computed, StepTiming::Clock::now(), current_->gradients->times());
  if (placement_.logical_replicas == 1 && !was_left_out_) any_model_->instance->apply_updates();
  bring_copies_up_to_date();
  combine_values();
}

void ReplicatedStep::compute_replicas(const StepMoment& moment, int lane) {
  copies_.pull(lane);
  const int64_t count = placement_.replicas_per_lane();
  for (int64_t nth = 0; nth < count; ++nth) {
    const auto local = static_cast<size_t>(lane * count + nth);
    if (local < batches_.size()) {
      compute_replica(*models_[local], batches_[local], lane, nth);
    } else {
      if (placement_.replicas_meet) accompany(moment, lane);
      contribute_nothing(lane, nth);
    }
  }
}

double ReplicatedStep::share_of(const Batch& batch) const {
  return static_cast<double>(batch.size) / static_cast<double>(full_batch_);
}

// A replica without a batch takes part in the exchanges of the others, where it counts nothing: what it
// computes is of no use.
void ReplicatedStep::accompany(const StepMoment& moment, int lane) {
  const EnteredExchange entered(&meeting_.of(static_cast<size_t>(lane)));
  full_model_->of_lane(lane).run({.components = no_batch_, .seed = moment.seed, .step = moment.step});
}

StepInputs ReplicatedStep::inputs_of(size_t local) const {
  const int64_t replica = placement_.replicas().first + static_cast<int64_t>(local);
  return {.components = batches_[local].components,
          .seed = seed_of_replica(moment_.seed, replica),
          .step = moment_.step};
}

void ReplicatedStep::compute_replica(CompiledModel& model, const Batch& batch, int lane, int64_t nth) {
  PlanInstance& instance = model.of_lane(lane);
  const bool alone = placement_.logical_replicas == 1;
  const auto local = static_cast<size_t>(lane * placement_.replicas_per_lane() + nth);
  const EnteredExchange entered(alone ? nullptr : &meeting_.of(local));
  const StepInputs inputs = inputs_of(local);
  if (in_parts_) {
    const auto whole = [&](size_t i) {
      updater_.apply(current_->parameters[i], instance.gradient(i).values<float>(), 1, team_);
    };
    return instance.run(inputs, whole, PartUpdates(updater_, current_->parameters));
  }
  const auto share = static_cast<float>(share_of(batch));
  const auto weigh = [&](std::span<float> values) {
    if (!alone && batch.size != full_batch_)
      for (float& value : values) value *= share;
  };
  const std::span<float> block = instance.gradient_block();
  instance.run(inputs, [&](size_t i) {
    weigh(block.subspan(static_cast<size_t>(instance.gradient_offset(i)),
                        static_cast<size_t>(instance.gradient(i).elements())));
    current_->gradients->add(lane, nth, i, block);
  });
  if (alone) return;

  for (size_t f = 0; f < model.fetch_names.size(); ++f) {
    const Array& value = instance.fetched(f);
    if (current_->is_number[f]) {
      numbers_[local].push_back(value.item());
    } else {
      arrays_[local].push_back(value.clone());
    }
  }
  if (!current_->updates) return;
  const std::span<float> updates = current_->update_blocks[static_cast<size_t>(lane)];
  for (size_t i = 0; i < current_->update_parts.size(); ++i) {
    const BlockPart& part = current_->update_parts[i];
    const std::span<float> values =
        updates.subspan(static_cast<size_t>(part.offset), static_cast<size_t>(part.elements));
    std::ranges::copy(instance.update_value(i).values<float>(), values.begin());
    weigh(values);
    current_->updates->add(lane, nth, i, updates);
  }
}

void ReplicatedStep::contribute_nothing(int lane, int64_t nth) {
  const std::span<float> block = any_model_->of_lane(lane).gradient_block();
  std::ranges::fill(block, 0.0F);
  for (size_t i = 0; i < current_->parameters.size(); ++i) current_->gradients->add(lane, nth, i, block);
  if (!current_->updates) return;
  const std::span<float> updates = current_->update_blocks[static_cast<size_t>(lane)];
  std::ranges::fill(updates, 0.0F);
  for (size_t i = 0; i < current_->update_parts.size(); ++i) current_->updates->add(lane, nth, i, updates);
}

void ReplicatedStep::know_samples(int64_t samples) {
  samples_ = samples;
  scale_ = placement_.logical_replicas == 1 || samples == 0
               ? 1
               : static_cast<double>(full_batch_) / static_cast<double>(samples);
  scale_is_known_ = true;
  for (const SumRange& range : std::exchange(waiting_gradients_, {})) apply_gradient(range);
  for (const SumRange& range : std::exchange(waiting_updates_, {})) take_update(range);
}

// After all have been delivered.
void ReplicatedStep::take_waiting_updates() {
  const auto waiting = std::exchange(waiting_updates_, {});
  updates_may_be_taken_ = true;
  if (was_left_out_) return;
  for (const SumRange& range : waiting) take_update(range);
}

void ReplicatedStep::take_gradient(SumRange range) {
  if (applies_at_the_end() || !updater_.takes_parts()) {
    const int64_t elements = current_->gradient_elements[range.index];
    sums_[range.index] = {range.sum.data() - range.first, static_cast<size_t>(elements)};
    elements_left_[range.index] -= static_cast<int64_t>(range.sum.size());
    if (applies_at_the_end() || elements_left_[range.index] > 0) return;
    range = {range.index, 0, sums_[range.index]};
  }
  if (scale_is_known_) {
    apply_gradient(range);
  } else {
    waiting_gradients_.push_back(range);
  }
}

void ReplicatedStep::apply_gradient(const SumRange& range) {
  const size_t parameter = current_->parameters[range.index];
  // The communication thread has no team: the lanes' are computing.
  if (static_cast<int64_t>(range.sum.size()) == current_->gradient_elements[range.index])
    return updater_.apply(parameter, range.sum, scale_, placement_.ranks == 1 ? team_ : single_thread_);
  updater_.apply_part(parameter, range.first, range.sum, scale_);
}

void ReplicatedStep::take_update(const SumRange& range) {
  if (!scale_is_known_ || !updates_may_be_taken_) {
    waiting_updates_.push_back(range);
    return;
  }
  const auto scale = static_cast<float>(scale_);
  Array variable = copies_.host(current_->updated_variables[range.index]);
  std::ranges::transform(range.sum, variable.values<float>().begin() + range.first,
                         [scale](float value) { return value * scale; });
}

bool ReplicatedStep::applies_at_the_end() const {
  return rule_ || updater_.needs_all_gradients() || copies_.scheme() != UpdateScheme::kReplicatedHost;
}

void ReplicatedStep::apply_together() {
  const bool is_server = copies_.scheme() != UpdateScheme::kParameterServer || placement_.rank == 0;
  if (!is_server && !updater_.may_leave_out()) return;  // the server alone has the sums
  std::optional<double> scale = scale_;
  if (updater_.needs_all_gradients())
    scale = updater_.common_scale(std::vector<std::span<const float>>(sums_.begin(), sums_.end()), scale_);
  was_left_out_ = !scale;
  if (was_left_out_ || !is_server) return;
  if (rule_) return apply_rule(*scale);
  const auto apply_to = [&](ParameterUpdater& updater) {
    for (size_t i = 0; i < sums_.size(); ++i) updater.apply(current_->parameters[i], sums_[i], *scale, team_);
  };
  if (lane_updaters_.empty()) return apply_to(updater_);
  lanes_.run(
      [&](int lane) { apply_to(lane == 0 ? updater_ : *lane_updaters_[static_cast<size_t>(lane - 1)]); });
}

void ReplicatedStep::bring_copies_up_to_date() {
  if (copies_.scheme() == UpdateScheme::kReplicatedHost) return;
  const auto& updated = current_->updated_variables;
  if (placement_.logical_replicas == 1 && copies_.scheme() == UpdateScheme::kParameterServer)
    for (size_t i = 0; i < updated.size(); ++i) {  // apply_updates has written to the lane's copies
      Array host = copies_.host(updated[i]);
      std::memcpy(host.data(), any_model_->instance->updated_variable(i).data(), host.bytes());
    }
  for (const std::string& name : updated) copies_.refresh(name);
  if (copies_.scheme() != UpdateScheme::kParameterServer || placement_.ranks == 1) return;
  for (const std::string& name : current_->gradient_variables) {
    Array host = copies_.host(name);
    communicator_.broadcast({host.data(), host.bytes()});
  }
}

}  // namespace mox::internal
