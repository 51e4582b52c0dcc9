// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/setup/start_warnings.h"

#include <utility>

#include "runtime/preflight/findings.h"

namespace railhead::comm {
namespace {

preflight::RankFacts FactsOf(absl::Span<const RailReport> rails) {
  preflight::RankFacts facts;
  for (const RailReport& rail : rails) {
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

std::vector<RailReport> UsualRails(absl::Span<const RankReport> reports) {
  std::vector<preflight::RankFacts> ranks;
  ranks.reserve(reports.size());
  for (const RankReport& report : reports) ranks.push_back(FactsOf(report.rails));
  std::vector<RailReport> usual;
  for (const preflight::RailFacts& rail : preflight::UsualOf(ranks).rails) {
    usual.push_back(
        {rail.name.rail, "", "", rail.rate, rail.port.has_value() ? rail.port->mtu : 0});
  }
  return usual;
}

std::vector<std::string> StartWarnings(const preflight::RankFacts& own,
                                       absl::Span<const RailReport> usual) {
  return preflight::WarningsOf(own, FactsOf(usual));
}

}  // namespace railhead::comm
