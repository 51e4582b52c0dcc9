// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/start_warnings.h"

#include <utility>

#include "runtime/preflight/findings.h"

namespace railhead::comm {
namespace {

preflight::RankFacts FactsOf(const RankReport& report) {
  preflight::RankFacts facts;
  facts.name = report.name;
  for (const RailReport& rail : report.rails) {
    preflight::RailFacts& entry = facts.rails.emplace_back();
    entry.name = {rail.rail, rail.device, 0, "verbs"};
    entry.rate = rail.rate;
    if (rail.mtu == 0) continue;
    entry.port.emplace();
    entry.port->mtu = rail.mtu;
  }
  return facts;
}

}  // namespace

std::vector<std::string> StartWarnings(int rank, const preflight::RankFacts& own,
                                       absl::Span<const RankReport> reports) {
  std::vector<preflight::RankFacts> ranks;
  ranks.reserve(reports.size());
  for (const RankReport& report : reports) ranks.push_back(FactsOf(report));
  ranks[static_cast<size_t>(rank)] = own;
  return preflight::WarningsOf(rank, ranks);
}

}  // namespace railhead::comm
