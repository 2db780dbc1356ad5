#include "runtime/data/internal/flow.h"

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "runtime/data/happens_before.h"
#include "runtime/interruption/interruption.h"
#include "runtime/refusals/promised_workers.h"

namespace mox::data::internal {
namespace {

using mox::internal::PromisedWorkers;
using mox::internal::WorkerCount;

constexpr char kGraphBuilt = 0;  // a name for happens_before.h that a body knows before it reads anything

}  // namespace

struct Flow::Graph {
  // The nodes live and die in the driver's thread, inside the arena.
  struct Nodes {
    tbb::task_group_context context{
        tbb::task_group_context::isolated,
        tbb::task_group_context::concurrent_wait | tbb::task_group_context::default_traits};
    tbb::flow::graph graph{context};
    tbb::flow::input_node<Ticket*> produce;
    tbb::flow::limiter_node<Ticket*> limiter;
    tbb::flow::function_node<Ticket*, Ticket*> evaluate;
    tbb::flow::sequencer_node<Ticket*> sequencer;
    tbb::flow::function_node<Ticket*> queue;

    Nodes(Graph& owner, int threads, int limit)
        : produce(graph,
                  [&owner](tbb::flow_control& control) {
                    observe(&kGraphBuilt);
                    Ticket* ticket = owner.produce_one(control);
                    publish(&owner);
                    return ticket;
                  }),
          limiter(graph, limit),
          evaluate(graph, threads,
                   [&owner](Ticket* ticket) {
                     observe(&kGraphBuilt);
                     owner.evaluate_one(ticket);
                     publish(&owner);
                     return ticket;
                   }),
          sequencer(graph,
                    [](Ticket* ticket) {
                      observe(ticket);
                      const size_t sequence = ticket->sequence;
                      publish(ticket);
                      return sequence;
                    }),
          queue(graph, tbb::flow::serial, [&owner](Ticket* ticket) {
            observe(&kGraphBuilt);
            owner.enqueue(ticket);
            publish(&owner);
            return tbb::flow::continue_msg();
          }) {
      tbb::flow::make_edge(produce, limiter);
      tbb::flow::make_edge(limiter, evaluate);
      tbb::flow::make_edge(evaluate, sequencer);
      tbb::flow::make_edge(sequencer, queue);
    }
  };

  Graph(std::function<void(Ticket&)> produce_body, std::function<void(Ticket&)> evaluate_body,
        int thread_count, int in_flight)
      : produce(std::move(produce_body)),
        evaluate(std::move(evaluate_body)),
        threads(thread_count),
        limit(in_flight),
        workers(std::max(0, thread_count - 1), 1),
        arena(1 + workers.count(), 1),  // the driver is one of them
        worker_count(arena) {
    driver = std::thread([this] { drive(); });
  }

  ~Graph() {
    request_stop();
    {
      std::lock_guard lock(mutex);
      quitting = true;
    }
    wake_driver.notify_one();
    driver.join();
  }

  void drive() {
    arena.execute([this] {
      Nodes built(*this, threads, limit);
      {
        std::lock_guard lock(mutex);
        nodes = &built;
      }
      publish(&kGraphBuilt);
      built.produce.activate();
      for (;;) {
        built.graph.wait_for_all();
        std::unique_lock lock(mutex);
        wake_driver.wait(lock, [this] { return quitting || kicked; });
        if (quitting) break;
        kicked = false;
      }
      built.graph.wait_for_all();
      observe(this);  // all bodies
    });
  }

  Ticket* produce_one(tbb::flow_control& control) {
    observe(&sequence);  // the call before this one
    Ticket* ticket = nullptr;
    {
      std::lock_guard lock(mutex);
      if (stopped || ended) {
        control.stop();
        return nullptr;
      }
      if (free.empty()) {
        tickets.push_back(std::make_unique<Ticket>());
        free.push_back(tickets.back().get());
      }
      ticket = free.back();
      free.pop_back();
    }
    ticket->sequence = sequence++;
    produce(*ticket);
    ended = ticket->end || ticket->error;
    publish(&sequence);
    publish(ticket);
    return ticket;
  }

  void evaluate_one(Ticket* ticket) {
    observe(ticket);
    if (!ticket->end && !ticket->error) evaluate(*ticket);
    publish(ticket);
  }

  void enqueue(Ticket* ticket) {
    observe(ticket);
    std::lock_guard lock(mutex);
    ready.push_back(ticket);
    wake_consumer.notify_one();
  }

  void request_stop() {
    {
      std::lock_guard lock(mutex);
      stopped = true;
    }
    wake_consumer.notify_all();
  }

  const std::function<void(Ticket&)> produce, evaluate;
  const int threads, limit;
  const PromisedWorkers workers;
  tbb::task_arena arena;
  WorkerCount worker_count;

  uint64_t sequence = 0;  // these two belong to the serial stage
  bool ended = false;

  mutable std::mutex mutex;  // guards what follows
  std::condition_variable wake_consumer, wake_driver;
  std::vector<std::unique_ptr<Ticket>> tickets;
  std::vector<Ticket*> free;
  std::deque<Ticket*> ready;
  Nodes* nodes = nullptr;
  bool stopped = false;   // nothing more is produced or taken
  bool quitting = false;  // the consumer is gone: the nodes may go, too
  bool kicked = false;    // the driver has work that it may not have seen

  std::thread driver;
};

Flow::Flow(std::function<void(Ticket&)> produce, std::function<void(Ticket&)> evaluate, int threads,
           int limit)
    : graph_(std::make_unique<Graph>(std::move(produce), std::move(evaluate), threads, limit)) {}

Flow::~Flow() = default;

Ticket* Flow::take() {
  std::unique_lock lock(graph_->mutex);
  // A wish to stop wakes nobody.
  constexpr std::chrono::milliseconds kLook(100);
  while (!graph_->wake_consumer.wait_for(lock, kLook,
                                         [this] { return graph_->stopped || !graph_->ready.empty(); }))
    mox::internal::throw_if_interrupted();
  if (graph_->stopped) return nullptr;
  Ticket* ticket = graph_->ready.front();
  graph_->ready.pop_front();
  return ticket;
}

void Flow::release(Ticket* ticket) {
  Graph::Nodes* nodes = nullptr;
  {
    std::lock_guard lock(graph_->mutex);
    graph_->free.push_back(ticket);
    if (graph_->stopped) return;
    nodes = graph_->nodes;
  }
  nodes->limiter.decrementer().try_put(tbb::flow::continue_msg());
  {
    std::lock_guard lock(graph_->mutex);
    graph_->kicked = true;
  }
  graph_->wake_driver.notify_one();
}

size_t Flow::waiting() const {
  std::lock_guard lock(graph_->mutex);
  return graph_->ready.size();
}

void Flow::stop() { graph_->request_stop(); }

std::string Flow::refusal() const { return graph_->workers.refusal(); }

}  // namespace mox::data::internal
