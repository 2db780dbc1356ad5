// How long the values of a plan live, which of them share memory, and where in the arena they lie. The
// instructions and values of the plan are complete before, with first_instruction, last_instruction and the
// storage of each; the functions are called in this order.
#pragma once

#include <string>
#include <vector>

#include "runtime/exec/internal/plan_impl.h"

namespace mox {

// When the listener is told of a gradient: once it is there and nothing reads its variable any more, which
// may be updated then, nor the gradient itself, whose memory the listener may overwrite. `gradient_variables`
// names the variable of each of plan.gradients.
void schedule_gradient_events(Plan::Impl& plan, const std::vector<std::string>& gradient_variables);

// Lets kernels that can do so hand their gradients over in parts: those computed where nothing reads the
// variable any more, not even the kernel itself, and read by nothing. `gradient_variables` as above.
void hand_over_in_parts(Plan::Impl& plan, const std::vector<std::string>& gradient_variables);

// Gradients that are used when their event comes need memory no longer than that.
void let_gradients_share_memory(Plan::Impl& plan);

// Lets outputs take over the memory of inputs that die with their instruction, where the kernel allows it.
void share_in_place(Plan::Impl& plan);

// Places what lives in the arena, and fills in the statistics of memory.
void place_in_arena(Plan::Impl& plan);

}  // namespace mox
