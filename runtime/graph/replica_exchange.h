// What a kernel may ask of the other logical replicas of a training step, which compute the same plan on
// other parts of the batch at the same time.
#pragma once

#include <span>
#include <string_view>

namespace mox {

class ReplicaExchange {
 public:
  enum class Of {
    kValues,     // of the forward pass: a replica without a batch counts nothing
    kGradients,  // of the backward pass: a gradient counts as much as its replica does in the loss, and what
                 // comes back is divided by that share, since whoever takes the replica's gradients
                 // multiplies by it
  };

  virtual ~ReplicaExchange() = default;
  // Waits until all replicas have called it, and makes `values`, which have one size everywhere, their sum:
  // in the order of the summation tree, so the same bits wherever the replicas are. All call it in the same
  // order; `what` is the name of the caller, for messages. Throws what has ended another replica's step.
  virtual void sum(std::string_view what, std::span<float> values, Of of) = 0;
};

// The calling thread computes one of several replicas for as long as this lives: the plans that it runs
// exchange by `exchange`.
class EnteredExchange {
 public:
  explicit EnteredExchange(ReplicaExchange* exchange);  // null: there is one replica
  ~EnteredExchange();
  EnteredExchange(const EnteredExchange&) = delete;
  EnteredExchange& operator=(const EnteredExchange&) = delete;

 private:
  ReplicaExchange* previous_;
};

// That of the calling thread, entered last; null if it computes no replica of several.
ReplicaExchange* entered_exchange();

}  // namespace mox
