// Variables and the scopes of their names, for use inside a model function.
//
//   auto scope = mox::var_scope("hidden");
//   auto w = mox::get_variable("weights", {784, 128}, mox::glorot_uniform());   // "hidden/weights"
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "moxing/model/initializer.h"
#include "runtime/base/source_location.h"
#include "runtime/graph/tensor.h"

namespace mox {

// A penalty on a variable: a scalar tensor that the engine adds to the loss.
using Regularizer = std::function<Tensor(const Tensor& variable)>;
Regularizer l2_regularizer(float scale);  // scale * sum(v^2) / 2
Regularizer l1_regularizer(float scale);  // scale * sum(|v|)

struct VariableOptions {
  bool trainable = true;         // whether optimizers change it
  Regularizer regularizer = {};  // its value goes to the collection "regularization_losses"
};

// The variable of that name in the current scope, float32. It is made if it does not exist.
//
// Throws InvalidArgument (showing both places) if it exists and the scope does not allow reuse, or if it
// exists with another shape; NotFound if the scope requires reuse and it does not exist; FailedPrecondition
// outside of a model function.
Tensor get_variable(std::string_view name, const Shape& shape,
                    const Initializer& initializer = glorot_uniform(), const VariableOptions& options = {},
                    SourceLocation where = SourceLocation::current());

enum class Reuse {
  kInherit,  // as the scope around it; at the top: forbid
  kForbid,   // a name may be used once
  kRequire,  // every name must exist already
  kAuto,     // make it or take it
};

struct VarScopeOptions {
  Reuse reuse = Reuse::kInherit;
  // The type of the numbers that convolutions and matrix products in the scope take, forward and backward,
  // whatever the run's precision: kFloat32 or kBFloat16 (docs/precision.md). Variables are float32 all the
  // same. None: as the scope around it.
  std::optional<DType> force_dtype = {};
  // What is computed in the scope is not kept for the backward pass, but computed again there, to the same
  // bits: less memory, about a third more time. What leaves the scope, and random numbers, are kept
  // (docs/recomputation.md). A scope inside of such a scope belongs to it; one that is opened again under its
  // name is another stretch.
  bool recompute = false;
};

// While alive, names of variables (and of nodes) on this thread are inside `name`. Scopes nest; one may be
// opened again under the same name.
class VarScope {
 public:
  VarScope(std::string_view name, const VarScopeOptions& options);
  explicit VarScope(const VarScopeOptions& options);  // adds nothing to names
  ~VarScope();
  VarScope(const VarScope&) = delete;
  VarScope& operator=(const VarScope&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};
// Throws InvalidArgument for a name that is empty or begins or ends with '/', and for another force_dtype.
[[nodiscard]] VarScope var_scope(std::string_view name, Reuse reuse = Reuse::kInherit);
[[nodiscard]] VarScope var_scope(std::string_view name, const VarScopeOptions& options);
// A scope without a name, for its options alone: names inside are as outside.
[[nodiscard]] VarScope var_scope(const VarScopeOptions& options);

// Tensors of the graph being built that were put under `key`, in order: "variables", "trainable_variables",
// "regularization_losses", or a key of one's own (add_to_collection). `scope`: only those whose name is in
// that scope.
std::vector<Tensor> get_collection(const std::string& key, std::string_view scope = "");
void add_to_collection(const std::string& key, const Tensor& tensor);

// After each training step `variable` takes the value of `value`, a tensor of its type (moving averages),
// computed from the variables as they were before the step. Throws InvalidArgument for anything else, and for
// a variable that has such a value already. A run whose optimizer trains the variable, too, ends with
// InvalidArgument before its first step.
void update_after_step(const Tensor& variable, const Tensor& value,
                       SourceLocation where = SourceLocation::current());

// Whether `name` is `scope` or inside it: "a/b" is inside "a", "ab" is not. Everything is inside "".
bool is_in_scope(std::string_view name, std::string_view scope);

}  // namespace mox
