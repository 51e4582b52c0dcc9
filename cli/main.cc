// SPDX-License-Identifier: Apache-2.0
//
// railhead: command-line tool that shows rails, jobs and their placement.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "base/printable_text.h"
#include "cli/access/cluster.h"
#include "cli/access/prometheus.h"
#include "cli/commands.h"
#include "cli/complete.h"
#include "cli/doctor/doctor.h"
#include "cli/output/diagnosis.h"
#include "cli/plan.h"
#include "cli/rails.h"
#include "cli/size_plan.h"
#include "cli/topology.h"
#include "cli/why.h"
#include "kube/client.h"

namespace railhead::cli {
namespace {

bool UsesColours() { return isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr; }

int Doctor(const CommandLine& line, bool json) {
  const auto fail = [](const absl::Status& status) {
    std::cerr << "railhead doctor: " << PrintableText(status.message()) << "\n";
    return kFailed;
  };
  const absl::StatusOr<ReachedCluster> reached = ReachCluster(line.cluster);
  const std::string& space = line.doctor_space;
  absl::StatusOr<doctor::Scope> scope =
      doctor::ParseScope(line.doctor_words, space.empty() && reached.ok() ? reached->space : space);
  if (!scope.ok()) return fail(scope.status());
  if (!reached.ok()) return fail(reached.status());
  return doctor::RunDoctor(
      {*std::move(scope), json, UsesColours(), RAILHEAD_VERSION}, *reached->api,
      [&reached] { return reached->clock->Now(); }, std::cout, std::cerr);
}

int Why(const WhyOptions& options, const ClusterFlags& cluster) {
  if (!options.files.empty() || !options.decision.empty()) {
    return RunWhy(options, nullptr, absl::Now, std::cout, std::cerr);
  }
  const absl::StatusOr<ReachedCluster> reached = ReachCluster(cluster);
  if (!reached.ok()) {
    std::cerr << "railhead why: " << reached.status().message()
              << "; or pass the output of `kubectl get nodes,pods,events -A -o json` with -f\n";
    return kBadInput;
  }
  return RunWhy(
      options, reached->api.get(), [&reached] { return reached->clock->Now(); }, std::cout,
      std::cerr);
}

int Topology(const TopologyOptions& options, const ClusterFlags& cluster) {
  if (!options.files.empty()) return RunTopology(options, nullptr, std::cout, std::cerr);
  const absl::StatusOr<ReachedCluster> reached = ReachCluster(cluster);
  if (!reached.ok()) {
    std::cerr << "railhead topology: " << reached.status().message()
              << "; or pass sources with -f (see --help)\n";
    return kBadSource;
  }
  return RunTopology(options, reached->api.get(), std::cout, std::cerr);
}

int Rails(RailsOptions options, double interval) {
  if (absl::Status wrong = CheckRailsOptions(options); !wrong.ok()) {
    std::cerr << "railhead rails: " << PrintableText(wrong.message()) << "\n";
    return kBadInput;
  }
  options.clears = options.watch && !options.json && isatty(STDOUT_FILENO) == 1;
  return RunRails(
      options,
      [&](const std::string& query) {
        return AskPrometheus(options.prometheus, query, options.at);
      },
      [&] {
        absl::SleepFor(absl::Seconds(interval));
        return true;
      },
      std::cout, std::cerr);
}

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int Dispatch(const CLI::App& app, CommandLine& line) {
  const bool json = line.output == "json";
  line.plan.json = json;
  line.size.json = json;
  line.why.json = json;
  line.size.fabric = line.plan.fabric;
  line.plan.all_reduce.rate = line.size.rate;
  line.plan.all_reduce.efficiency = line.size.efficiency;
  if (app.got_subcommand("topology")) return Topology(line.topology, line.cluster);
  if (app.got_subcommand("doctor")) return Doctor(line, json);
  if (app.got_subcommand("nccl-log")) {
    line.nccl_log.json = json;
    line.nccl_log.colours = UsesColours();
    return RunNcclLog(line.nccl_log, std::cout, std::cerr);
  }
  if (app.got_subcommand("why")) return Why(line.why, line.cluster);
  if (app.got_subcommand("rails")) {
    line.rails.json = json;
    return Rails(line.rails, line.rails_interval);
  }
  if (app.got_subcommand("completion")) {
    std::cout << CompletionScript(line.shell);
    return 0;
  }
  if (!line.size.parameters.empty()) return RunSizePlan(line.size, std::cout, std::cerr);
  return RunPlan(line.plan, Seconds, std::cout, std::cerr);
}

int Main(int argc, char** argv) {
  const std::string path = argc > 0 ? argv[0] : "";
  const std::string called = path.substr(path.rfind('/') + 1);
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  CommandLine line;
  // kubectl runs plugins under the first name, and requests completions from the second.
  const std::unique_ptr<CLI::App> app =
      MakeApp(called == "kubectl-railhead" ? "kubectl railhead" : "railhead", line);
  const bool completes = !arguments.empty() && arguments[0] == kCompleteCommand;
  if (completes || called == "kubectl_complete-railhead") {
    if (completes) arguments.erase(arguments.begin());
    std::cout << ToText(Complete(*app, arguments));
    return 0;
  }
  try {
    app->parse(argc, argv);
    CheckTogether(*app, line);
  } catch (const CLI::ParseError& error) {
    // CLI11 has an exit code for each kind of error; here all of them are bad input.
    if (app->exit(error) == 0) return 0;
    const std::string advice = Advice(*app, arguments);
    if (!advice.empty()) std::cerr << advice << "\n";
    const bool diagnoses = app->got_subcommand("doctor") || app->got_subcommand("nccl-log");
    return diagnoses ? kFailed : kBadInput;
  }
  return Dispatch(*app, line);
}

}  // namespace
}  // namespace railhead::cli

int main(int argc, char** argv) { return railhead::cli::Main(argc, argv); }
