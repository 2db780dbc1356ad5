#include "moxing/model/recompute_scope.h"

#include "runtime/graph/graph.h"

namespace mox {
namespace {

NodeTraits traits_inside(Graph& graph) {
  NodeTraits traits = current_traits();
  if (traits.recomputed_stretch == 0) traits.recomputed_stretch = graph.new_stretch();
  return traits;
}

}  // namespace

struct RecomputeScope::State {
  TraitsScope traits;
};

RecomputeScope::RecomputeScope(bool on) {
  Graph& graph = current_graph("RecomputeScope");
  if (on) state_ = std::unique_ptr<State>(new State{TraitsScope(traits_inside(graph))});
}
RecomputeScope::~RecomputeScope() = default;

}  // namespace mox
