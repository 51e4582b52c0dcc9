// SPDX-License-Identifier: Apache-2.0
//
// The commands and flags of `railhead`: one table, from which help, completion and the nearest
// spelling come.
#ifndef RAILHEAD_CLI_COMMANDS_H_
#define RAILHEAD_CLI_COMMANDS_H_

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/cluster.h"
#include "cli/plan.h"
#include "cli/rails.h"
#include "cli/size_plan.h"
#include "cli/topology.h"
#include "cli/why.h"

namespace railhead::cli {

// The parsed command line.
struct CommandLine {
  PlanOptions plan;
  SizePlanOptions size;  // with the fabric of `plan`
  TopologyOptions topology;
  WhyOptions why;
  RailsOptions rails;
  double rails_interval = 2;  // seconds, with --watch
  std::vector<std::string> doctor_words;
  std::string doctor_space;
  ClusterFlags cluster;
  std::string output = "text";
  std::string shell;
};

// `line` must outlive the result, which writes to it. `name` is that of the program.
std::unique_ptr<CLI::App> MakeApp(const std::string& name, CommandLine& line);

// Throws CLI::ParseError where what was parsed does not go together.
void CheckTogether(const CLI::App& app, const CommandLine& line);

// For arguments that were refused: which command or flag was probably meant; else "".
std::string Advice(const CLI::App& app, const std::vector<std::string>& arguments);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_COMMANDS_H_
