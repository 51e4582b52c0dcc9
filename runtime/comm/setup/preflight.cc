// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/setup/preflight.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "fabric/port_counters.h"
#include "fabric/root_files.h"
#include "runtime/base/now.h"
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/comm/setup/neighbours.h"
#include "runtime/config/env.h"
#include "runtime/preflight/local.h"
#include "runtime/preflight/ping.h"
#include "runtime/preflight/sharp.h"

namespace railhead::comm {
namespace {

// Limit of each of the round trips with one peer over one rail, which take a millisecond if it
// responds.
constexpr absl::Duration kPingPatience = absl::Seconds(3);
// The longest that a rail takes: small frames pass, large ones do not.
constexpr absl::Duration kLongestPing = absl::Seconds(6);

// Returns the steps in which all pairs of neighbours are measured: the exclusive or of their ranks.
// In each step, a rank is in at most one pair, so pairs do not disturb each other.
std::set<int> Steps(int world) {
  std::set<int> steps;
  for (int rank = 0; rank < world; ++rank) {
    for (const int neighbour : Neighbours(rank, world)) steps.insert(rank ^ neighbour);
  }
  return steps;
}

class Preflight {
 public:
  Preflight(bootstrap::Bootstrap& bootstrap, const SetupOptions& options)
      : bootstrap_(bootstrap), options_(options) {
    if (auto files = fabric::RootFiles::Open(options.root); files.ok()) files_ = *std::move(files);
  }

  absl::StatusOr<std::vector<preflight::RankFinding>> Run() {
    absl::StatusOr<Fabric> fabric = SetUp(bootstrap_, options_);
    if (!fabric.ok()) return fabric.status();
    fabric_ = *std::move(fabric);
    preflight::RankFacts& facts = fabric_.facts;
    facts.sharp = preflight::ReadSharp(options_.root, config::ProcessEnvironment);
    const std::map<int, fabric::PortCounters> before = Count();
    if (absl::Status asked = AskAll(); !asked.ok()) return asked;
    const std::map<int, fabric::PortCounters> after = Count();
    for (preflight::RailFacts& rail : facts.rails) {
      const auto counted = before.find(rail.name.rail);
      if (counted == before.end()) continue;
      rail.counted = counted->second != fabric::PortCounters();
      rail.growth = preflight::Grown(counted->second, after.at(rail.name.rail));
    }
    for (const rails::RailName& name : fabric_.rails) {
      if (name.transport == "verbs") continue;
      facts.rails.push_back(preflight::ReadInterface(options_.root, name));
      facts.rails.back().trouble = fabric_.tcp[static_cast<size_t>(name.rail)].trouble;
      facts.rails.back().leaves_elsewhere = fabric_.wires.TroubleOf(name.rail);
    }
    return Judge();
  }

 private:
  std::map<int, fabric::PortCounters> Count() const {
    std::map<int, fabric::PortCounters> counters;
    for (const preflight::RailFacts& rail : fabric_.facts.rails) {
      if (!files_.has_value()) continue;
      counters[rail.name.rail] =
          fabric::ReadPortCounters(*files_, rail.name.device, rail.name.port);
    }
    return counters;
  }

  // Goes step by step, so that both ranks of a pair measure at the same time.
  absl::Status AskAll() {
    for (const int step : Steps(bootstrap_.world_size())) {
      const absl::Duration longest = kLongestPing * static_cast<double>(fabric_.rails.size()) +
                                     options_.settings.StartTimeout();
      const absl::StatusOr<std::vector<std::string>> together =
          bootstrap_.Exchange(std::string(), MonotonicNow() + longest);
      if (!together.ok()) return together.status();
      const auto peer = fabric_.peers.find(bootstrap_.rank() ^ step);
      if (peer != fabric_.peers.end()) Ask(peer->first, *peer->second);
    }
    return absl::OkStatus();
  }

  void Ask(int rank, rails::Peer& peer) {
    const bool begins = bootstrap_.rank() < rank;
    for (size_t k = 0; k < peer.rail_count(); ++k) {
      transport::Link& link = peer.link(k);
      const absl::StatusOr<preflight::PingResult> result =
          preflight::Ping(link, begins, kPingPatience);
      if (!begins) continue;
      preflight::PingFacts& ping = fabric_.facts.pings.emplace_back();
      ping.peer = rank;
      ping.rail = peer.rail_name(k).rail;
      ping.trouble = std::string(result.status().message());
      if (!result.ok()) continue;
      ping.nanoseconds = static_cast<uint32_t>(std::min<int64_t>(
          absl::ToInt64Nanoseconds(result->time), std::numeric_limits<uint32_t>::max()));
      ping.large_bytes = static_cast<uint32_t>(link.max_payload());
      ping.large_trouble = std::string(result->large.message());
    }
  }

  absl::StatusOr<std::vector<preflight::RankFinding>> Judge() {
    const absl::StatusOr<std::vector<std::string>> all =
        bootstrap_.Exchange(preflight::Encode(fabric_.facts),
                            MonotonicNow() + options_.settings.StartTimeout() +
                                kLongestPing * static_cast<double>(fabric_.rails.size()));
    if (!all.ok()) return all.status();
    std::vector<preflight::RankFacts> ranks;
    for (const std::string& bytes : *all) {
      absl::StatusOr<preflight::RankFacts> facts = preflight::ParseFacts(bytes);
      if (!facts.ok()) return facts.status();
      ranks.push_back(*std::move(facts));
    }
    return preflight::FindAll({fabric_.rails.front().transport, fabric_.decision.degraded_reason},
                              ranks);
  }

  bootstrap::Bootstrap& bootstrap_;
  const SetupOptions& options_;
  std::optional<fabric::RootFiles> files_;
  Fabric fabric_;
};

}  // namespace

absl::StatusOr<std::vector<preflight::RankFinding>> RunPreflight(CommunicatorOptions options) {
  // The check is about rails, so ranks of one pod use them, too. No rank is rejected: the check
  // shows what a job that requires RDMA lacks.
  config::Settings& settings = options.setup.settings;
  options.setup.place = "";
  options.setup.all_neighbours = true;
  if (settings.transport == config::TransportChoice::kShm) {
    settings.transport = config::TransportChoice::kAuto;
  }
  if (settings.require_rdma && settings.transport == config::TransportChoice::kAuto) {
    settings.transport = config::TransportChoice::kVerbs;
  }
  settings.require_rdma = false;
  settings.fallback = config::Fallback::kAllow;
  absl::StatusOr<bootstrap::Bootstrap> bootstrap = Join(options);
  if (!bootstrap.ok()) return bootstrap.status();
  return Preflight(*bootstrap, options.setup).Run();
}

}  // namespace railhead::comm
