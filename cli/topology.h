// SPDX-License-Identifier: Apache-2.0
//
// `railhead topology`: what the fabric is, out of what its parts say.
#ifndef RAILHEAD_CLI_TOPOLOGY_H_
#define RAILHEAD_CLI_TOPOLOGY_H_

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "kube/client.h"

namespace railhead::cli {

struct TopologyOptions {
  // Sources in any order, or one FabricModel; "-": standard input. None: the API server is asked.
  std::vector<std::string> files;
  std::string output = "text";      // or yaml, json, svg, labels, kueue, kai, volcano
  std::optional<std::string> name;  // of the fabric; nothing: its own, or "discovered"
};

constexpr int kNoTrouble = 0;
constexpr int kBadSource = 1;  // also what cannot be written
constexpr int kTrouble = 2;    // the answer is there, and something in the fabric should be mended

// Prints the answer to `out`; findings and errors, each on a line, to `err`. `api` is asked where
// there are no files. Returns the exit status.
int RunTopology(const TopologyOptions& options, kube::Api* api, std::ostream& out,
                std::ostream& err);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_TOPOLOGY_H_
