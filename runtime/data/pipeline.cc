#include "runtime/data/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/resource_limits.h"
#include "runtime/base/seconds.h"
#include "runtime/data/content_sample.h"
#include "runtime/data/internal/batches_in_flight.h"
#include "runtime/data/internal/cursor.h"
#include "runtime/data/internal/flow.h"
#include "runtime/data/internal/group_share.h"
#include "runtime/data/internal/handing_over_trial.h"
#include "runtime/data/internal/node.h"
#include "runtime/data/internal/thread_trial.h"
#include "runtime/refusals/out_of_memory.h"

namespace mox {

using namespace data::internal;

namespace {

using Clock = std::chrono::steady_clock;

// How many batches were ready when one was taken.
class QueueFill {
 public:
  void add(double waiting) {
    sum_ += waiting;
    ++takes_;
  }
  double mean() const { return takes_ > 0 ? sum_ / takes_ : 0; }

 private:
  double sum_ = 0;
  int64_t takes_ = 0;
};

// Batches made in other threads.
struct RunningFlow {
  std::unique_ptr<Flow> flow;        // none as long as they are made in `next`
  std::atomic<bool> pausing{false};  // no batch is begun: the flow is about to be replaced
  std::mutex mutex;                  // guards the next, for `stop` from another thread
  Flow* to_stop = nullptr;
};

// A place between two batches.
struct Mark {
  std::vector<uint64_t> state;
  int64_t batches = 0, samples = 0;
};

std::shared_ptr<MemoryBudget> budget_of(const PipelineOptions& options) {
  if (options.memory_budget) return options.memory_budget;
  if (options.memory_budget_bytes > 0) return std::make_shared<MemoryBudget>(options.memory_budget_bytes);
  return MemoryBudget::of_process();
}

[[noreturn]] void refuse(SourceLocation where, const std::string& why) {
  throw InvalidArgument(fmt::format("Pipeline ({}): {}", to_string(where), why));
}

void require(const PipelineOptions& options, SourceLocation where) {
  if (options.threads != PipelineOptions::kAutomatic && (options.threads < 0 || options.threads > 4096))
    refuse(where, fmt::format("threads must be in [0, 4096], it is {}", options.threads));
  if (options.most_threads < 0 || options.most_threads > 4096)
    refuse(where, fmt::format("most_threads must be in [0, 4096], it is {}", options.most_threads));
  if (options.prefetch_batches < 0)
    refuse(where, fmt::format("prefetch_batches must not be negative, it is {}", options.prefetch_batches));
  if (options.group_first < 0 || options.group_count < 1 ||
      options.group_first > options.group_size - options.group_count)
    refuse(where,
           fmt::format("a share [{}, {}) does not lie within a group of {} batches", options.group_first,
                       options.group_first + options.group_count, options.group_size));
}

size_t bytes_of_batch(const Node& root, SourceLocation where) {
  size_t bytes = 0;
  for (const auto& type : root.signature()) {
    if (type.shape.rank() == 0)
      refuse(where, fmt::format("each element of the data set must be a batch, but its type is {}; end it "
                                "with .batch(size)",
                                types_text(root.signature())));
    bytes += type.bytes();
  }
  return bytes;
}

}  // namespace

class Pipeline::Implementation {
 public:
  Implementation(Dataset dataset, const PipelineOptions& options, const std::string& cursor,
                 SourceLocation where)
      : dataset_(std::move(dataset)),
        threads_(options.threads == PipelineOptions::kAutomatic ? 1 : options.threads),
        share_(options.group_size, options.group_first, options.group_count),
        sample_names_(options.sample_names),
        execution_(std::make_shared<Execution>()) {
    require(options, where);
    execution_->seed = options.seed;
    execution_->memory_budget = budget_of(options);
    const Node& root = *dataset_.node();
    batch_bytes_ = bytes_of_batch(root, where);
    position_.stages = root.stages();
    position_.seed = options.seed;
    try {
      begin_at(cursor);
    } catch (...) {
      std::rethrow_exception(named(std::current_exception()));
    }
    mark();
    // Until a batch is made, what its leaves carry is there, too.
    const ElementEvaluator::Carried carried = evaluator_->carried();
    in_flight_.emplace(execution_->memory_budget, batch_bytes_ + (carried.is_given ? 0 : carried.bytes),
                       std::max<int64_t>(options.prefetch_batches, root.requested_prefetch()));
    in_flight_->take_for(threads_);
    if (options.threads == PipelineOptions::kAutomatic) {
      const int most = options.most_threads > 0 ? options.most_threads : available_cores();
      thread_trial_.emplace(static_cast<int>(std::clamp<int64_t>(in_flight_->affordable() - 1, 1, most)));
    }
  }

  ~Implementation() {
    stop();
    running_.flow.reset();
  }

  bool next(Batch* batch) {
    const auto start = Clock::now();
    if (error_) std::rethrow_exception(error_);
    if (ended_ || execution_->stop.load(std::memory_order_relaxed)) return false;
    const bool delivered = running_.flow ? next_from_flow(batch) : next_inline(batch);
    statistics_.wait_seconds += seconds_since(start);
    if (delivered && running_.flow && thread_trial_ && !thread_trial_->tuner().settled()) judge_threads();
    return delivered;
  }

  std::string cursor() const {
    return text_of({.state = position_.state, .batches = position_.batches, .samples = position_.samples});
  }

  void mark() {
    mark_ = {.state = position_.state, .batches = position_.batches, .samples = position_.samples};
  }

  std::string marked_cursor() const { return text_of(mark_); }

  PipelineStatistics statistics() const {
    PipelineStatistics result = statistics_;
    result.mean_queue_fill = queue_fill_.mean();
    result.in_flight_limit = running_.flow ? in_flight_->limit() : 1;
    result.threaded = running_.flow != nullptr;
    result.threads = threads_;
    return result;
  }

  void stop() {
    execution_->stop.store(true);
    const std::lock_guard lock(running_.mutex);
    if (running_.to_stop) running_.to_stop->stop();
  }

 private:
  // Compiles the data set: at its begin, or where `cursor` says unless that is empty.
  void begin_at(const std::string& cursor) {
    Cursor resumed;
    if (!cursor.empty()) {
      resumed = cursor_from_json(cursor);
      Cursor now = position_;
      now.contents = content_sample(dataset_);
      check_cursor(resumed, now);
    }
    CompileContext context{.execution = execution_, .stages = 0};
    Compiled compiled = dataset_.node()->compile(context);
    evaluator_ = compiled.evaluator;
    stream_ = compiled.take_stream();
    stream_->reset(0);
    if (!cursor.empty()) {
      StateReader reader(resumed.state);
      stream_->restore(reader);
      if (!reader.at_end()) throw DataError("the data cursor is damaged: its position has too many numbers");
      position_ = std::move(resumed);
    } else {
      stream_->save(&position_.state);
    }
  }

  std::string text_of(const Mark& mark) const {
    return to_json({.stages = position_.stages,
                    .seed = position_.seed,
                    .batches = mark.batches,
                    .samples = mark.samples,
                    .state = mark.state,
                    .contents = content_sample(dataset_)});
  }

  // The serial stage.
  void produce(Ticket& ticket) {
    ticket.leaves.resize(stream_->arity());
    ticket.state.clear();
    ticket.error = nullptr;
    ticket.end = ticket.pause = running_.pausing.load(std::memory_order_relaxed);
    if (ticket.pause) return;
    try {
      if (share_.next(*stream_, ticket.leaves.data())) {
        stream_->save(&ticket.state);
      } else {
        ticket.end = true;
        if (!share_.is_whole())
          stream_->save(&ticket.state);  // batches of others may have come after this share's last one
      }
    } catch (const Stopped&) {
      ticket.end = true;
    } catch (...) {
      ticket.error = std::current_exception();
    }
  }

  // The parallel stage.
  void evaluate(Ticket& ticket) const {
    if (execution_->stop.load(std::memory_order_relaxed)) {
      ticket.end = true;
      ticket.state.clear();
      return;
    }
    try {
      ticket.epoch = evaluator_->pass_of(ticket.leaves.data());
      ticket.element = evaluator_->make(ticket.leaves.data());
      ticket.names.clear();
      if (sample_names_) evaluator_->append_names(ticket.leaves.data(), &ticket.names);
      for (const auto& component : ticket.element)
        if (component.shape()[0] != ticket.element[0].shape()[0])
          throw InvalidArgument(
              fmt::format("the components of a batch must have as many rows each, but component 0 is {} and "
                          "another is {}",
                          to_string(ticket.element[0].type()), to_string(component.type())));
    } catch (const Stopped&) {
      ticket.end = true;
      ticket.state.clear();
    } catch (...) {
      ticket.error = std::current_exception();
    }
    ticket.leaves.clear();  // of a stream they hold the samples, which the batch has as well
  }

  bool next_inline(Batch* batch) {
    const auto start = Clock::now();
    produce(ticket_);
    if (!ticket_.end && !ticket_.error) evaluate(ticket_);
    const bool delivered = deliver(ticket_, batch);
    if (delivered && threads_ > 0 && trial_.made_in(seconds_since(start))) start_flow();
    return delivered;
  }

  void start_flow() {
    execution_->split_samples.store(threads_ > 1 && trial_.is_worth_splitting());
    running_.pausing.store(false, std::memory_order_relaxed);
    running_.flow =
        std::make_unique<Flow>([this](Ticket& ticket) { produce(ticket); },
                               [this](Ticket& ticket) { evaluate(ticket); }, threads_, in_flight_->limit());
    if (const std::string refusal = running_.flow->refusal();
        !refusal.empty() && !std::exchange(said_refusal_, true))
      log_warning(fmt::format(
          "data pipeline: the system gives fewer than the {} threads that were to prepare data: {}. "
          "Raise the limits on processes and memory (ulimit -u, ulimit -v, the control group's "
          "pids.max), or set a lower value of data_threads",
          threads_, refusal));
    const std::lock_guard lock(running_.mutex);
    running_.to_stop = running_.flow.get();
    if (execution_->stop.load()) running_.flow->stop();
  }

  // After each batch of a flow whose number of threads is not settled.
  void judge_threads() {
    if (running_.pausing.load(std::memory_order_relaxed)) return;
    // Another number needs another flow: this one ends behind the batches that are in it.
    if (thread_trial_->delivered(statistics_.wait_seconds))
      running_.pausing.store(true, std::memory_order_relaxed);
    if (thread_trial_->tuner().settled()) say_choice();
  }

  void say_choice() {
    const ThreadTuner& tuner = thread_trial_->tuner();
    log_info(fmt::format(
        "data pipeline: {} of at most {} threads, at most {} batches of {:.1f} MiB in flight ({})",
        tuner.threads(), tuner.most(), in_flight_->with(tuner.threads()),
        static_cast<double>(batch_bytes_) / (1 << 20), tuner.history()));
  }

  void resume_with_other_threads() {
    {
      const std::lock_guard lock(running_.mutex);
      running_.to_stop = nullptr;
    }
    running_.flow.reset();
    threads_ = thread_trial_->tuner().threads();
    in_flight_->take_for(threads_);
    start_flow();
  }

  bool next_from_flow(Batch* batch) {
    queue_fill_.add(running_.flow->waiting());
    Ticket* ticket = running_.flow->take();
    if (ticket && ticket->pause) {
      resume_with_other_threads();
      ticket = running_.flow->take();
    }
    if (!ticket) return false;
    // Given back whatever happens: the graph waits for it.
    struct Return {
      Flow& flow;
      Ticket* ticket;
      ~Return() { flow.release(ticket); }
    } give_back{*running_.flow, ticket};
    return deliver(*ticket, batch);
  }

  // Memory that was refused while a batch was made; other errors say themselves what they are of.
  std::exception_ptr named(const std::exception_ptr& error) const {
    const std::string advice = fmt::format(
        "use a smaller batch_size, or lower data_threads and {}, which bound how many batches there are at a "
        "time",
        execution_->memory_budget->option());
    const auto what = [this] {
      return fmt::format("what the data set ({}) makes for a batch of {} bytes", dataset_.describe(),
                         batch_bytes_);
    };
    try {
      try {
        std::rethrow_exception(error);
      } catch (...) {
        mox::internal::rethrow_naming_memory(what, advice);
      }
    } catch (...) {
      return std::current_exception();
    }
  }

  bool deliver(Ticket& ticket, Batch* batch) {
    if (ticket.error) {
      error_ = named(std::exchange(ticket.error, nullptr));
      std::rethrow_exception(error_);
    }
    if (ticket.end) {
      ended_ = true;
      if (!ticket.state.empty()) position_.state.swap(ticket.state);
      return false;
    }
    batch->components = std::move(ticket.element);
    batch->size = batch->components[0].shape()[0];
    batch->epoch = ticket.epoch;
    batch->names = std::move(ticket.names);
    if (std::ssize(batch->names) != batch->size || std::ranges::all_of(batch->names, &std::string::empty))
      batch->names.clear();
    position_.state.swap(ticket.state);
    if (share_.is_whole()) {  // a position says nothing about the share
      ++position_.batches;
      position_.samples += batch->size;
    }
    ++statistics_.batches;
    statistics_.samples += batch->size;
    for (const auto& component : batch->components) statistics_.bytes += component.bytes();
    return true;
  }

  Dataset dataset_;
  int threads_;
  GroupShare share_;  // of the serial stage
  bool sample_names_;
  size_t batch_bytes_ = 0;
  std::shared_ptr<Execution> execution_;
  std::optional<BatchesInFlight> in_flight_;
  std::shared_ptr<const ElementEvaluator> evaluator_;
  std::unique_ptr<Stream> stream_;

  Cursor position_;  // after the last batch delivered
  Mark mark_;
  PipelineStatistics statistics_;
  QueueFill queue_fill_;
  std::exception_ptr error_;
  bool ended_ = false;

  Ticket ticket_;  // of the batches made in `next`
  HandingOverTrial trial_;
  std::optional<ThreadTrial> thread_trial_;
  bool said_refusal_ = false;
  RunningFlow running_;
};

Pipeline::Pipeline(Dataset dataset, const PipelineOptions& options, const std::string& cursor,
                   SourceLocation where)
    : implementation_(std::make_unique<Implementation>(std::move(dataset), options, cursor, where)) {}
Pipeline::~Pipeline() = default;
bool Pipeline::next(Batch* batch) { return implementation_->next(batch); }
std::string Pipeline::cursor() const { return implementation_->cursor(); }
void Pipeline::mark() { implementation_->mark(); }
std::string Pipeline::marked_cursor() const { return implementation_->marked_cursor(); }
PipelineStatistics Pipeline::statistics() const { return implementation_->statistics(); }
void Pipeline::stop() { implementation_->stop(); }

}  // namespace mox
