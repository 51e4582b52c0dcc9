// SPDX-License-Identifier: Apache-2.0
#include "runtime/preflight/cause.h"

namespace railhead::preflight {

std::string CauseOf(const RailFacts& rail, const RankFacts& rank) {
  if (rail.trouble.empty()) return "";
  // A device that cannot be opened has no port to check, and one without a link nothing to pin.
  if (!rail.device_node_trouble.empty()) return "device_node";
  if (!rail.state.empty() && rail.state != "ACTIVE") return "port";
  if (rank.memlock < rank.least_bytes) return "memlock";
  return "other";
}

}  // namespace railhead::preflight
