#include "moxing/boost/boost_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "moxing/console/console.h"
#include "moxing/json/parse_json.h"
#include "moxing/json/whole_number.h"
#include "runtime/base/error.h"
#include "runtime/text/printable.h"
#include "runtime/text/unsigned_nan.h"

namespace mox::boost {
namespace {

constexpr int64_t kForwardsOfAStep = 3;

// JSON has no NaN and no infinities, which metrics may be: these are texts.
nlohmann::json json_of(double value) {
  return std::isfinite(value) ? nlohmann::json(value)
                              : nlohmann::json(fmt::format("{}", unsigned_nan(value)));
}
double value_of(const nlohmann::json& json) {
  return json.is_string() ? std::stod(json.get<std::string>()) : json.get<double>();
}

class BoostReportHook : public Hook {
 public:
  explicit BoostReportHook(const StageTwo& stage) : stage_(stage) {}

  std::string name() const override { return "boost_report"; }

  void after_create_session(Session& session) override {
    if (rows_.empty() && session.global_step() == stage_.first_step()) add_row(session);
  }

  void after_run(Session& session, const StepResult& result) override {
    loss_sum_ += result.number("trained_loss");
    ++loss_steps_;
    const int64_t step = session.global_step();
    if (step == stage_.first_step()) return add_row(session);
    if (step < stage_.first_step() || rows_.empty()) return;
    const double per_epoch = session.steps_per_epoch();
    const auto epochs = [&](int64_t of) {
      return per_epoch > 0 ? std::floor((of - stage_.first_step()) / per_epoch + 1e-9) : 0;
    };
    if (epochs(step) > epochs(step - 1) || step == session.last_step()) add_row(session);
  }

  void end(Session& session) override {
    if (session.failed()) return;
    if (!stage_.has_begun() && session.global_step() > 0 && session.global_step() <= stage_.first_step())
      session.console().print(
          fmt::format("stage 2 has not begun: it begins after step {}, and this is the end of step {}",
                      stage_.first_step(), session.global_step()));
    if (stage_.has_begun() && !rows_.empty()) print(session);
  }

  std::string save_state() const override {
    if (rows_.empty()) return "";
    nlohmann::json rows = nlohmann::json::array();
    for (const Row& row : rows_) {
      nlohmann::json values = nlohmann::json::array();
      for (const auto& [name, value] : row.values) values.push_back({name, json_of(value)});
      rows.push_back({row.step, row.forwards, std::move(values)});
    }
    return nlohmann::json({{"rows", rows}, {"loss_sum", loss_sum_}, {"loss_steps", loss_steps_}}).dump();
  }
  void restore_state(const std::string& state) override {
    try {
      const auto json = parse_json(state);
      for (const auto& row : json.at("rows")) {
        Row& back = rows_.emplace_back(Row{count_in(row.at(0)), count_in(row.at(1)), {}});
        for (const auto& value : row.at(2))
          back.values.emplace_back(value.at(0).get<std::string>(), value_of(value.at(1)));
      }
      loss_sum_ = json.at("loss_sum").get<double>();
      loss_steps_ = count_in(json.at("loss_steps"));
    } catch (const std::exception& error) {
      throw DataError(fmt::format("the state of the report of stage 2 is damaged: {}", error.what()));
    }
  }

 private:
  struct Row {
    int64_t step = 0, forwards = 0;
    std::vector<std::pair<std::string, double>> values;
  };

  void add_row(Session& session) {
    Row row{session.global_step(), 0, {}};
    if (stage_.has_begun())
      row.forwards = kForwardsOfAStep * stage_.method().counts().steps + stage_.method().counts().trials;
    if (session.can_evaluate())
      row.values = session.evaluate();
    else if (loss_steps_ > 0)
      row.values = {{"training loss", loss_sum_ / static_cast<double>(loss_steps_)}};
    loss_sum_ = 0;
    loss_steps_ = 0;
    rows_.push_back(std::move(row));
  }

  void print(Session& session) const {
    std::vector<std::string> names;
    for (const Row& row : rows_)
      for (const auto& [name, value] : row.values)
        if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    std::string text = fmt::format("\nstage 2, in {} dimensions{}\n{:>10} {:>10}",
                                   stage_.method().basis().components(), explained(), "step", "forwards");
    for (const std::string& name : names) text += fmt::format(" {:>14}", printable(name));
    for (const Row& row : rows_) {
      text += fmt::format("\n{:>10} {:>10}", row.step, row.forwards);
      for (const std::string& name : names) {
        const auto value = std::ranges::find(row.values, name, &std::pair<std::string, double>::first);
        text += value == row.values.end() ? fmt::format(" {:>14}", "-")
                                          : fmt::format(" {:>14.4f}", unsigned_nan(value->second));
      }
    }
    const DimReduce::Counts& counts = stage_.method().counts();
    text += fmt::format("\nthe search failed in {} of {} steps; {} trials; accepted {}:", counts.failed,
                        counts.steps, counts.trials,
                        stage_.rho() ? "step lengths" : "trials (dim_reduce.rho has changed)");
    for (size_t m = 0; m < counts.accepted.size(); ++m)
      text += fmt::format(" {:.4g} ({}x)", stage_.rho() ? std::pow(*stage_.rho(), m) : m + 1.0,
                          counts.accepted[m]);
    session.console().print(text);
  }

  std::string explained() const {
    const std::vector<double>& ratios = stage_.explained_ratio();
    if (ratios.empty()) return fmt::format(" (of '{}')", stage_.basis_path());
    double sum = 0;
    for (const double ratio : ratios) sum += ratio;
    return fmt::format(" that explain {:.2f} % of the variance of the snapshots (the first {:.2f} %)",
                       100 * sum, 100 * ratios[0]);
  }

  const StageTwo& stage_;
  std::vector<Row> rows_;
  double loss_sum_ = 0;  // of the training steps since the last row
  int64_t loss_steps_ = 0;
};

}  // namespace

std::shared_ptr<Hook> boost_report_hook(const StageTwo& stage) {
  return std::make_shared<BoostReportHook>(stage);
}

}  // namespace mox::boost
