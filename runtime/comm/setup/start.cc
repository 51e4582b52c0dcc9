// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/setup/start.h"

#include <sys/statvfs.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/preflight/cause.h"

namespace railhead::comm {

metrics::Start DescribeStart(const SetupOptions& options, const Fabric& fabric, int world_size) {
  const preflight::RankFacts& facts = fabric.facts;
  metrics::Start start;
  start.world_size = world_size;
  start.pod = options.settings.pod;
  start.transport = fabric.rails.front().transport;
  start.requested = std::string(config::TransportChoiceName(options.settings.transport));
  start.fallback = std::string(config::FallbackName(fabric.decision.fallback));
  start.trouble = fabric.trouble;
  start.unauthenticated = options.no_secret_cause;
  for (const preflight::RailFacts& rail : facts.rails) {
    start.rails.push_back({rail.name, rail.link_layer, rail.rate,
                           rail.port.has_value() ? rail.port->mtu : 0, rail.trouble,
                           preflight::CauseOf(rail, facts)});
  }
  if (facts.memlock != preflight::kUnlimited) start.memlock = facts.memlock;
  // Ranks that share memory do not pin any.
  if (!fabric.decision.shm) {
    start.registers = facts.registers;
    start.least_bytes = facts.least_bytes;
  }
  start.shared_memory = SharedMemorySize(options.root);
  return start;
}

std::optional<uint64_t> SharedMemorySize(const std::string& root) {
  struct statvfs size = {};
  if (::statvfs(absl::StrCat(absl::StripSuffix(root, "/"), "/dev/shm").c_str(), &size) != 0) {
    return std::nullopt;
  }
  return uint64_t{size.f_blocks} * size.f_frsize;
}

}  // namespace railhead::comm
