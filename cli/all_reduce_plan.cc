// SPDX-License-Identifier: Apache-2.0
#include "cli/all_reduce_plan.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <map>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/output/words.h"
#include "placement/score.h"

namespace railhead::cli {
namespace {

constexpr double kDefaultRailGbps = 400;
constexpr double kBytesPerGigabit = 1e9 / 8;

// GPUs and rails of all pods on one node.
struct Share {
  int gpus = 0;
  uint64_t rails = 0;
};

std::map<int, Share> SharesOf(const fabric::FabricModel& model,
                              const placement::PlacementRequest& request,
                              const placement::Placement& placement) {
  std::map<int, Share> shares;
  const std::vector<uint64_t> rails =
      placement::RailsOfRanks(model, request, placement.node_of_rank);
  for (size_t rank = 0; rank < rails.size(); ++rank) {
    Share& share = shares[placement.node_of_rank[rank]];
    share.gpus += request.gpus_per_pod;
    share.rails |= rails[rank];
  }
  return shares;
}

std::string Duration(double seconds) {
  if (seconds < 1e-3) return absl::StrFormat("%.4g us", seconds * 1e6);
  if (seconds < 1) return absl::StrFormat("%.4g ms", seconds * 1e3);
  return absl::StrFormat("%.4g s", seconds);
}

std::string Size(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (unit + 1 < std::size(kUnits) && bytes >= 1024 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++unit;
  }
  return absl::StrCat(bytes, " ", kUnits[unit]);
}

std::string Cell(const std::optional<AllReduceTime>& time) {
  if (!time.has_value()) return "-";
  return absl::StrCat(Duration(time->seconds), " ", time->protocol);
}

nlohmann::ordered_json ToJson(const std::optional<AllReduceTime>& time) {
  if (!time.has_value()) return nullptr;
  return {{"seconds", time->seconds}, {"protocol", std::string(time->protocol)}};
}

}  // namespace

absl::StatusOr<AllReducePlan> PlanAllReduce(const fabric::FabricModel& model,
                                            const placement::PlacementRequest& request,
                                            const placement::Placement& placement,
                                            const AllReduceOptions& options) {
  if (request.gpus_per_pod == 0 || request.hcas_per_pod == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--all-reduce: the pods of ", request.name, " have no ",
                     request.gpus_per_pod == 0 ? "GPU" : "HCA",
                     "; give gpusPerPod and hcasPerPod in the request"));
  }
  AllReducePlan plan;
  const std::map<int, Share> shares = SharesOf(model, request, placement);
  plan.gang.nodes = static_cast<int>(shares.size());
  plan.gang.gpus_per_node = 0;
  plan.rails = model.rails;
  for (const auto& [node, share] : shares) {
    plan.gang.gpus_per_node = std::max(plan.gang.gpus_per_node, share.gpus);
    plan.rails = std::min(plan.rails, std::popcount(share.rails));
  }
  const auto rate = model.link_gbps.find("node");
  const double rail_gbps =
      options.rate.value_or(rate != model.link_gbps.end() ? rate->second : kDefaultRailGbps);
  double node_gbps = rail_gbps * plan.rails;
  for (size_t level = 0; level < model.levels.size(); ++level) {
    const auto uplink = model.link_gbps.find(model.levels[level]);
    if (uplink == model.link_gbps.end() || placement.score.domains[level] < 2 ||
        uplink->second >= node_gbps) {
      continue;
    }
    node_gbps = uplink->second;
    plan.limit = model.levels[level];
  }
  plan.gang.node_bytes_per_second = node_gbps * kBytesPerGigabit * options.efficiency;
  plan.gang.gpu_bytes_per_second = options.gpu_gbps * kBytesPerGigabit;
  for (const uint64_t bytes : options.sizes) {
    AllReduceCase all_reduce = plan.gang;
    all_reduce.bytes = static_cast<double>(bytes);
    plan.rows.push_back({bytes, EstimateAllReduce(all_reduce), SharpPaysFrom(all_reduce)});
  }
  return plan;
}

std::string ToText(const AllReducePlan& plan) {
  std::string text = absl::StrFormat(
      "all-reduce over %s of %s and %s, estimated: a node sends %.4g GB/s%s, a GPU %.4g GB/s\n",
      Counted(plan.gang.nodes, "node"), Counted(plan.gang.gpus_per_node, "GPU"),
      Counted(plan.rails, "rail"), plan.gang.node_bytes_per_second / 1e9,
      plan.limit.empty() ? "" : absl::StrCat(" (uplinks of ", plan.limit, ")"),
      plan.gang.gpu_bytes_per_second / 1e9);
  absl::StrAppendFormat(&text, "  %-10s%-18s%-18s%-18s%s\n", "size", "ring", "tree", "SHARP",
                        "SHARP is fastest");
  for (const AllReducePlan::Row& row : plan.rows) {
    absl::StrAppendFormat(&text, "  %-10s%-18s%-18s%-18s%s\n", Size(row.bytes),
                          Cell(row.times.ring), Cell(row.times.tree), Cell(row.times.sharp),
                          row.sharp_from.has_value()
                              ? absl::StrCat("from ", *row.sharp_from, " nodes on")
                              : std::string("never"));
  }
  return text;
}

nlohmann::ordered_json ToJson(const AllReducePlan& plan) {
  nlohmann::ordered_json json = {{"nodes", plan.gang.nodes},
                                 {"gpusPerNode", plan.gang.gpus_per_node},
                                 {"railsPerNode", plan.rails},
                                 {"nodeBytesPerSecond", plan.gang.node_bytes_per_second},
                                 {"gpuBytesPerSecond", plan.gang.gpu_bytes_per_second},
                                 {"limitedBy", plan.limit},
                                 {"sizes", nlohmann::ordered_json::array()}};
  for (const AllReducePlan::Row& row : plan.rows) {
    nlohmann::ordered_json one = {{"bytes", row.bytes},
                                  {"ring", ToJson(std::optional(row.times.ring))},
                                  {"tree", ToJson(row.times.tree)},
                                  {"sharp", ToJson(row.times.sharp)},
                                  {"sharpFromNodes", nullptr}};
    if (row.sharp_from.has_value()) one["sharpFromNodes"] = *row.sharp_from;
    json["sizes"].push_back(std::move(one));
  }
  return json;
}

}  // namespace railhead::cli
