// SPDX-License-Identifier: Apache-2.0
//
// `railhead topology`: computes the fabric from its sources.
#ifndef RAILHEAD_CLI_TOPOLOGY_H_
#define RAILHEAD_CLI_TOPOLOGY_H_

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "kube/client.h"

namespace railhead::cli {

struct TopologyOptions {
  // Sources in any order, or one FabricModel; "-": standard input. Empty: reads from the API
  // server.
  std::vector<std::string> files;
  std::string output = "text";      // or yaml, json, svg, labels, kueue, kai, volcano
  std::optional<std::string> name;  // of the fabric; nullopt: its own, or "discovered"
};

constexpr int kNoTrouble = 0;
constexpr int kBadSource = 1;  // also if output cannot be written
constexpr int kTrouble = 2;    // result printed, but the fabric has faults to repair

// Prints the result to `out`; a table of the findings, or the error, to `err`. Uses `api` if no
// files are given. Returns the exit code.
int RunTopology(const TopologyOptions& options, kube::Api* api, std::ostream& out,
                std::ostream& err);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_TOPOLOGY_H_
