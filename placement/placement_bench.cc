// SPDX-License-Identifier: Apache-2.0
//
// How good and how fast placement is, beside best fit, on clusters made up from fixed numbers.
// Prints Markdown.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "fabric/model/fabric_model.h"
#include "placement/node_room.h"
#include "placement/reasons.h"
#include "placement/request.h"
#include "placement/score.h"
#include "placement/solver.h"
#include "placement/testing/best_fit.h"
#include "placement/testing/random_fabric.h"

namespace railhead::placement {
namespace {

using fabric::FabricModel;
using Clock = std::chrono::steady_clock;

constexpr int kTrials = 100;

[[noreturn]] void Die(const std::string& why) {
  std::fprintf(stderr, "placement_bench: %s\n", why.c_str());
  std::exit(1);
}

double Milliseconds(Clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

double Percentile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(std::lround(share * static_cast<double>(values.size() - 1)))];
}

double PeakMebibytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

PlacementRequest Gang(int pods) {
  PlacementRequest request;
  request.pods = pods;
  request.gpus_per_pod = 8;
  request.hcas_per_pod = 8;
  return request;
}

// Into how many domains of each level an equal gang would still fit.
std::vector<double> Remaining(const FabricModel& model, const PlacementRequest& request,
                              const std::vector<int>& taken) {
  std::set<int> nodes(taken.begin(), taken.end());
  std::vector<double> fits;
  for (const std::vector<int>& domain_of_node : fabric::DomainsOfNodes(model)) {
    std::map<int, int> room;
    for (size_t i = 0; i < model.nodes.size(); ++i) {
      if (nodes.count(static_cast<int>(i)) == 0) {
        room[domain_of_node[i]] += RoomOnNode(model.nodes[i], request).pods;
      }
    }
    fits.push_back(0);
    for (const auto& [domain, pods] : room) fits.back() += pods >= request.pods ? 1 : 0;
  }
  return fits;
}

// Means over the trials of one row, of ours and of best fit.
struct Side {
  double spines = 0;
  double leaves = 0;
  double cut = 0;
  double spines_that_remain = 0;
  std::vector<double> times;

  void Add(const FabricModel& model, const PlacementRequest& request,
           const std::vector<int>& node_of_rank, double time) {
    const Score score = ScoreOf(model, request, node_of_rank);
    spines += score.domains[0];
    leaves += score.domains[1];
    cut += score.ring_crossings[1];
    spines_that_remain += Remaining(model, request, node_of_rank)[0];
    times.push_back(time);
  }
};

struct Cluster {
  int spines;
  int leaves_of_spine;
};

void Row(const Cluster& cluster, double occupancy, int pods) {
  testing::Shape shape;
  shape.fanout = {cluster.spines, cluster.leaves_of_spine};
  shape.occupancy = occupancy;
  std::mt19937 random(static_cast<unsigned>(cluster.spines * 1000 + pods));
  Side ours;
  Side theirs;
  int placed = 0;
  int better = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const FabricModel model = testing::RandomFabric(shape, random);
    const PlacementRequest request = Gang(pods);
    const Clock::time_point begin = Clock::now();
    const absl::StatusOr<Placement> placement = Solve(model, request);
    const Clock::time_point middle = Clock::now();
    const std::vector<int> greedy = testing::BestFit(model, request);
    const Clock::time_point end = Clock::now();
    if (!placement.ok()) Die(std::string(placement.status().message()));
    if (placement->placed == greedy.empty()) Die("best fit and the solver disagree on what fits");
    if (!placement->placed) continue;
    ++placed;
    ours.Add(model, request, placement->node_of_rank, Milliseconds(middle - begin));
    theirs.Add(model, request, greedy, Milliseconds(end - middle));
    better += placement->score.domains < ScoreOf(model, request, greedy).domains ? 1 : 0;
  }
  if (placed == 0) return;
  const auto mean = [placed](double sum) { return sum / placed; };
  std::printf(
      "| %d | %.0f %% | %d | %d | **%.2f** / %.2f | **%.2f** / %.2f | **%.2f** / %.2f | %.2f / "
      "%.2f "
      "| %d %% | %.1f / %.1f ms | %.1f / %.1f ms |\n",
      cluster.spines * cluster.leaves_of_spine * shape.nodes_per_leaf, 100 * occupancy, pods,
      placed, mean(ours.spines), mean(theirs.spines), mean(ours.leaves), mean(theirs.leaves),
      mean(ours.cut), mean(theirs.cut), mean(ours.spines_that_remain),
      mean(theirs.spines_that_remain), 100 * better / placed, Percentile(ours.times, 0.5),
      Percentile(ours.times, 0.99), Percentile(theirs.times, 0.5), Percentile(theirs.times, 0.99));
}

void Goal(const std::string& what, double measured, const char* unit, double goal) {
  std::printf("| %s | %.1f %s | < %g %s | %s |\n", what.c_str(), measured, unit, goal, unit,
              measured < goal ? "yes" : "**no**");
}

// The goals: what a plan for 2048 pods on 16384 nodes costs, at its dearest.
void Goals() {
  testing::Shape shape;
  shape.fanout = {32, 32};
  std::printf("\n| what | measured | goal | reached |\n|---|---|---|---|\n");
  double peak = 0;
  for (const auto& [what, occupancy, dead, partly_used, part] :
       {std::tuple{"all nodes free", 0.0, 0.0, 0.0, 8},
        std::tuple{"half of them free", 0.5, 0.0, 0.0, 8},
        std::tuple{"half of them free, 5 % with a dead rail, pods of 4 HCAs", 0.5, 0.05, 0.0, 4},
        std::tuple{"rails in use at random on each, pods of 2 HCAs", 0.0, 0.05, 1.0, 2}}) {
    shape.occupancy = occupancy;
    shape.dead_rails = dead;
    shape.partly_used = partly_used;
    shape.told_rails = partly_used > 0;
    std::mt19937 random(16384);  // NOLINT(bugprone-random-generator-seed): the same each time
    std::vector<double> times;
    for (int trial = 0; trial < kTrials; ++trial) {
      const FabricModel model = testing::RandomFabric(shape, random);
      PlacementRequest request = Gang(2048);
      request.hcas_per_pod = part;
      if (partly_used > 0) request.gpus_per_pod = part;
      const Clock::time_point begin = Clock::now();
      if (!Solve(model, request)->placed) Die("2048 pods were not placed");
      times.push_back(Milliseconds(Clock::now() - begin));
    }
    peak = PeakMebibytes();
    Goal(std::string("plan for 2048 pods on 16384 nodes, ") + what + ": p50",
         Percentile(times, 0.5), "ms", 100);
    Goal(std::string("the same: p99 of ") + std::to_string(kTrials), Percentile(times, 0.99), "ms",
         100);
  }
  shape.partly_used = 0;
  shape.occupancy = 0.95;
  shape.dead_rails = 0.05;
  shape.unschedulable = 0.02;
  std::mt19937 random(16384);  // NOLINT(bugprone-random-generator-seed): the same each time
  std::vector<double> times;
  for (int trial = 0; trial < kTrials; ++trial) {
    const FabricModel model = testing::RandomFabric(shape, random);
    const Clock::time_point begin = Clock::now();
    if (WhyNotPlaced(model, Gang(2048))->empty()) Die("2048 pods fit on a full cluster");
    times.push_back(Milliseconds(Clock::now() - begin));
  }
  Goal("2048 pods cannot fit on 16384 nodes, because: p99", Percentile(times, 0.99), "ms", 1000);
  Goal("peak memory of the process, the model of the cluster in it",
       std::max(peak, PeakMebibytes()), "MiB", 150);
}

int Run() {
  std::printf(
      "| nodes | in use | pods | trials | spines | leaves | ring edges between leaves | spines "
      "that "
      "still hold such a gang | fewer domains than best fit | time p50 / p99 | best fit's |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (const Cluster& cluster : {Cluster{8, 8}, Cluster{16, 16}, Cluster{32, 32}}) {
    const int nodes = cluster.spines * cluster.leaves_of_spine * 16;
    for (const double occupancy : {0.5, 0.7, 0.85}) {
      for (const int pods : {24, nodes / 64, nodes / 8}) Row(cluster, occupancy, pods);
    }
  }
  Goals();
  return 0;
}

}  // namespace
}  // namespace railhead::placement

int main() { return railhead::placement::Run(); }
