// SPDX-License-Identifier: Apache-2.0
//
// Commands and flags of `railhead`, as one table: source of help, completion and spelling
// suggestions.
#ifndef RAILHEAD_CLI_COMMANDS_H_
#define RAILHEAD_CLI_COMMANDS_H_

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/access/cluster.h"
#include "cli/nccl_log/command.h"
#include "cli/plan.h"
#include "cli/rails.h"
#include "cli/size_plan.h"
#include "cli/topology.h"
#include "cli/why.h"

namespace railhead::cli {

// The parsed command line.
struct CommandLine {
  PlanOptions plan;
  SizePlanOptions size;  // uses the fabric of `plan`
  TopologyOptions topology;
  WhyOptions why;
  RailsOptions rails;
  double rails_interval = 2;  // seconds, with --watch
  std::vector<std::string> doctor_words;
  std::string doctor_space;
  NcclLogOptions nccl_log;
  ClusterFlags cluster;
  std::string output = "text";
  std::string shell;
};

// Returns the parser, which writes to `line`; `line` must outlive it. `name`: name of the program.
std::unique_ptr<CLI::App> MakeApp(const std::string& name, CommandLine& line);

// Throws CLI::ParseError if parsed options exclude or require each other.
void CheckTogether(const CLI::App& app, const CommandLine& line);

// Returns the command or flag that rejected arguments probably meant; "" if unknown.
std::string Advice(const CLI::App& app, const std::vector<std::string>& arguments);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_COMMANDS_H_
