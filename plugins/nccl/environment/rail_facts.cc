// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/environment/rail_facts.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "fabric/gid_table_reader.h"
#include "fabric/hca_netdev.h"
#include "fabric/pod_rails.h"
#include "fabric/rails_file.h"
#include "fabric/root_files.h"
#include "plugins/nccl/environment/gid_index.h"

namespace railhead::nccl {
namespace {

bool IsExcluded(const config::Settings& settings, int rail) {
  return !settings.rails.empty() &&
         std::find(settings.rails.begin(), settings.rails.end(), rail) == settings.rails.end();
}

std::optional<int> GidIndexOf(const std::string& root, const std::vector<fabric::PodRail>& rails,
                              absl::Span<const net::IpAddress> own) {
  const absl::StatusOr<fabric::RootFiles> files = fabric::RootFiles::Open(root);
  if (!files.ok()) return std::nullopt;
  std::vector<std::vector<fabric::GidEntry>> tables;
  for (const fabric::PodRail& rail : rails) {
    if (rail.link_layer == "InfiniBand") continue;  // NCCL does not use the index there
    if (!fabric::IsSaneName(rail.device)) return std::nullopt;
    tables.push_back(fabric::ReadGidTable(*files, rail.device, rail.port));
  }
  return ChooseGidIndex(tables, own);
}

}  // namespace

absl::StatusOr<RailFacts> ReadRailFacts(const std::string& root, const config::Settings& settings,
                                        absl::Span<const net::IpAddress> own) {
  absl::StatusOr<fabric::PodRails> known = fabric::ReadRailsFile(root, settings.rails_file);
  if (!known.ok()) return known.status();
  RailFacts facts;
  facts.rails = std::move(known->rails);
  std::erase_if(facts.rails, [&settings](const fabric::PodRail& rail) {
    return IsExcluded(settings, rail.rail);
  });
  std::sort(facts.rails.begin(), facts.rails.end(),
            [](const fabric::PodRail& a, const fabric::PodRail& b) { return a.rail < b.rail; });
  facts.gid_index = GidIndexOf(root, facts.rails, own);
  return facts;
}

}  // namespace railhead::nccl
