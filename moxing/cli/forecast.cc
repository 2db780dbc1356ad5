// mox forecast: what a training would reach on more nodes, simulated from the measured times of a step.
#include "moxing/job/forecast.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Validators.hpp>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "moxing/cli/internal/command.h"
#include "runtime/base/error.h"
#include "runtime/text/printable.h"

namespace mox::cli {
namespace {

struct ForecastArguments {
  std::string profile;
  std::vector<int> nodes = {2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
  std::vector<std::string> links = {"10G", "25G", "100G"};
  double latency_us = -1, efficiency = ForecastLink().efficiency;
  bool json = false;
};

constexpr double kUsualLatency = 20e-6;

// "25G", "2.5G" or "500M": bits a second.
double rate_of(const std::string& text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  const double unit = std::string_view(rest, end) == "G" ? 1e9 : std::string_view(rest, end) == "M" ? 1e6 : 0;
  if (error != std::errc() || unit == 0 || !(number > 0))
    throw InvalidArgument(
        fmt::format("--link: expected a rate in bits a second such as 25G or 500M, got '{}'", text));
  return number * unit;
}

void print_lines(const ForecastArguments& arguments, const StepProfile& profile,
                 const std::vector<double>& rates, double latency) {
  for (const double rate : rates)
    for (const int nodes : arguments.nodes) {
      const Forecast result =
          forecast_step(profile, nodes,
                        {.bits_per_second = rate, .efficiency = arguments.efficiency, .latency_s = latency});
      const nlohmann::ordered_json line = {{"simulated", true},
                                           {"nodes", nodes},
                                           {"bits_per_second", rate},
                                           {"step_s", result.step_s},
                                           {"samples_per_second", result.samples_per_second},
                                           {"speed_up", result.speed_up},
                                           {"exposed_s", result.exposed_s},
                                           {"limit", result.limit},
                                           {"has_sending_work", profile.sending_work.has_value()}};
      fmt::print("{}\n", line.dump());
    }
}

void forecast(const ForecastArguments& arguments) {
  const StepProfile profile = read_step_profile(arguments.profile);
  std::vector<double> rates;
  for (const std::string& text : arguments.links) rates.push_back(rate_of(text));
  const double latency = arguments.latency_us >= 0 ? arguments.latency_us * 1e-6
                         : profile.latency_s > 0   ? profile.latency_s
                                                   : kUsualLatency;
  if (arguments.json) return print_lines(arguments, profile, rates, latency);
  fmt::print("SIMULATED from '{}' (times: {})\n", arguments.profile, printable(profile.source));
  fmt::print("assumed: {:.0f} us one way, {:.0f} % of each link's rate, nothing else on the network\n",
             latency * 1e6, arguments.efficiency * 100);
  if (const auto& work = profile.sending_work) {
    fmt::print("sending: {:.3g} ns of a processor a byte, {:.3g} us a message, {}\n\n",
               work->seconds_per_byte * 1e9, work->seconds_per_message * 1e6,
               work->shares_cores ? "taken from the computing" : "on cores that do not compute");
  } else {
    fmt::print("sending: its work is not in this profile, and taken to be none\n\n");
  }
  fmt::print("{:>6} {:>8} {:>10} {:>12} {:>10} {:>11} {:>11}  {}\n", "nodes", "link", "step ms", "samples/s",
             "speed-up", "efficiency", "exposed ms", "limit");
  for (size_t i = 0; i < rates.size(); ++i)
    for (const int nodes : arguments.nodes) {
      const Forecast result = forecast_step(
          profile, nodes,
          {.bits_per_second = rates[i], .efficiency = arguments.efficiency, .latency_s = latency});
      fmt::print("{:>6} {:>8} {:>10.1f} {:>12.1f} {:>10.2f} {:>10.0f}% {:>11.1f}  {}\n", nodes,
                 arguments.links[i], result.step_s * 1e3, result.samples_per_second, result.speed_up,
                 100 * result.speed_up / nodes, result.exposed_s * 1e3, result.limit);
    }
}

}  // namespace

void add_forecast(CLI::App& mox) {
  CLI::App* command = mox.add_subcommand(
      "forecast",
      "Simulate what a training would reach on more nodes, from the profile that a run with "
      "--step_profile=FILE has written");
  auto arguments = std::make_shared<ForecastArguments>();
  command->add_option("PROFILE", arguments->profile, "The file of --step_profile")->required();
  command
      ->add_option("--nodes", arguments->nodes, "Numbers of nodes, each as fast as one rank of the profile")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 20));
  command->add_option("--link", arguments->links, "Rates of a node's link, in bits a second: 10G,25G,100G")
      ->delimiter(',');
  command
      ->add_option(
          "--latency", arguments->latency_us,
          "Microseconds that a message needs one way; not given: as measured for the profile, else 20")
      ->check(CLI::Range(0.0, 1e6));
  command->add_option("--efficiency", arguments->efficiency, "The share of a link's rate that data get")
      ->check(CLI::Range(0.01, 1.0));
  command->add_flag("--json", arguments->json, "One JSON object a line");
  command->callback([arguments] { forecast(*arguments); });
}

}  // namespace mox::cli
