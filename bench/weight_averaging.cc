#include "bench/weight_averaging.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "moxing/checkpoint/checkpoint.h"
#include "moxing/checkpoint/safetensors.h"

namespace bench {
namespace {

using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

void add(Vector& to, double factor, const Vector& from) {
  for (size_t i = 0; i < to.size(); ++i) to[i] += factor * from[i];
}

// All variables of a snapshot, one behind the other in the order of their names.
Vector values_of(const std::string& path) {
  Vector values;
  for (const mox::NamedArray& variable : mox::read_safetensors(path).tensors) {
    const auto of_one = variable.value.values<float>();
    values.insert(values.end(), of_one.begin(), of_one.end());
  }
  return values;
}

class InSpanHook : public mox::TrainingHook {
 public:
  explicit InSpanHook(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
      Vector direction = values_of(path);
      const double length = std::sqrt(dot(direction, direction));
      // Twice: snapshots are nearly parallel, and once leaves what their digits do not hold.
      for (int round = 0; round < 2; ++round)
        for (const Vector& other : basis_) add(direction, -dot(direction, other), other);
      const double left = std::sqrt(dot(direction, direction));
      if (left < 1e-6 * length) continue;
      for (double& value : direction) value /= left;
      basis_.push_back(std::move(direction));
    }
  }

  void before_run(mox::Session& session) override { before_ = variables(session); }

  void after_run(mox::Session& session, const mox::StepResult&) override {
    Vector change = variables(session);
    add(change, -1, before_);
    for (const Vector& direction : basis_) add(before_, dot(change, direction), direction);
    size_t at = 0;
    for (const std::string& name : session.trained_variable_names()) {
      mox::Array value = session.variable(name);
      for (float& element : value.values<float>()) element = static_cast<float>(before_[at++]);
      session.set_variable(name, value);
    }
  }

 private:
  static Vector variables(const mox::Session& session) {
    Vector values;
    for (const std::string& name : session.trained_variable_names()) {
      const mox::Array variable = session.variable(name);
      const auto of_one = variable.values<float>();
      values.insert(values.end(), of_one.begin(), of_one.end());
    }
    return values;
  }

  std::vector<Vector> basis_;
  Vector before_;
};

}  // namespace

void write_averaged_checkpoint(const std::string& checkpoint, const std::vector<std::string>& paths,
                               const std::string& log_dir) {
  std::map<std::string, Vector> sums;
  for (const std::string& path : paths)
    for (const mox::NamedArray& variable : mox::read_safetensors(path).tensors) {
      const auto values = variable.value.values<float>();
      Vector& sum = sums[variable.name];
      sum.resize(values.size());
      for (size_t i = 0; i < values.size(); ++i) sum[i] += static_cast<double>(values[i]);
    }
  mox::Checkpoint averaged = mox::load_checkpoint(checkpoint);
  averaged.optimizer_slots.clear();
  for (mox::NamedArray& variable : averaged.variables) {
    const auto sum = sums.find(variable.name);
    if (sum == sums.end()) continue;
    const std::span<float> values = variable.value.values<float>();
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(sum->second[i] / static_cast<double>(paths.size()));
  }
  mox::save_checkpoint(log_dir, averaged);
}

std::shared_ptr<mox::Hook> in_span_hook(const std::vector<std::string>& paths) {
  return std::make_shared<InSpanHook>(paths);
}

}  // namespace bench
