// SPDX-License-Identifier: Apache-2.0
//
// What a round of planning costs at a large cluster where hundreds of gangs wait. Prints Markdown.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "fabric/discovery/place_labels.h"
#include "operator/cluster/stored_pod.h"
#include "operator/gangs/cluster_room.h"
#include "operator/gangs/gang_machine.h"
#include "operator/gangs/node_tree.h"
#include "operator/gangs/stored_node.h"
#include "operator/gangs/turns.h"
#include "operator/objects/names.h"

namespace railhead::op::gangs {
namespace {

constexpr int kGangs = 500;
constexpr int kNodesOfLeaf = 16;
constexpr int kNodesOfSpine = 512;
constexpr int kPodsOfRunning = 32;
constexpr int kRounds = 10;
constexpr double kGoal = 200;
constexpr absl::Time kStart = absl::FromUnixSeconds(86'400);

double CpuMilliseconds() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

struct Scenario {
  int nodes;
  int kinds;
};

NodeValue MakeNode(int i) {
  auto node = std::make_shared<StoredNode>();
  node->name = absl::StrCat("gpu-node-", i);
  node->hcas = 8;
  node->hostname = node->name;
  node->labels = {{kHostname, node->hostname},
                  {"topology.railhead.io/spine", absl::StrCat("s", i / kNodesOfSpine)},
                  {"topology.railhead.io/leaf", absl::StrCat("l", i / kNodesOfLeaf)}};
  node->places = fabric::PlacesOf(node->labels.ToMap());
  node->allocatable = {{"cpu", 192'000},
                       {"ephemeral-storage", int64_t{1} << 50},
                       {"memory", int64_t{1} << 50},
                       {"nvidia.com/gpu", 8'000},
                       {"pods", 110'000},
                       {"rdma/hca", 8'000}};
  return node;
}

StoredPod MakePod(const std::string& gang, int index, int cpus, GangTerms terms) {
  StoredPod pod;
  pod.space = "train";
  pod.name = absl::StrCat(gang, "-", index);
  pod.uid = absl::StrCat("0b8a5f3e-2f0c-4a33-", pod.name);
  pod.requests = Resources{{"cpu", cpus * 1'000},
                           {"memory", int64_t{1} << 40},
                           {"nvidia.com/gpu", 8'000},
                           {"pods", 1'000},
                           {"rdma/hca", 8'000}};
  pod.labels = {{"batch.kubernetes.io/job-name", gang}};
  pod.member.emplace();
  terms.gang = "true";
  terms.owner = {"batch/v1", "Job", gang, gang};
  terms.kind = &jobs::KindOf(terms.owner);
  pod.member->terms = std::move(terms);
  pod.member->index = index;
  pod.member->created = kStart;
  return pod;
}

// Seven of eight nodes are in use, two of each leaf are free, and all that waits wants more of one
// leaf or of one spine than that.
class Cluster {
 public:
  explicit Cluster(const Scenario& scenario) {
    std::vector<NodeValue> nodes;
    nodes.reserve(static_cast<size_t>(scenario.nodes));
    for (int i = 0; i < scenario.nodes; ++i) nodes.push_back(MakeNode(i));
    const double begin = CpuMilliseconds();
    tree_ = BuildTree(nodes);
    tree_took_ = CpuMilliseconds() - begin;
    room_ = std::make_unique<ClusterRoom>(&tree_);
    for (int i = 0; i < scenario.nodes; ++i) {
      const std::string& name = nodes[static_cast<size_t>(i)]->name;
      for (const char* const of_each : {"agent", "exporter"}) {
        auto pod = std::make_shared<StoredPod>();
        pod->space = "kube-system";
        pod->uid = pod->name = absl::StrCat(of_each, "-", i);
        pod->node = name;
        pod->requests = Resources{{"cpu", 100}, {"memory", int64_t{1} << 36}, {"pods", 1'000}};
        pods_.push_back(std::move(pod));
      }
      if (i % 8 != 0) running_.push_back(name);
    }
    first_running_ = pods_.size();
    for (size_t i = 0; i < running_.size(); ++i) pods_.push_back(Running(i, 0));
    for (int i = 0; i < kGangs; ++i) {
      const bool of_leaf = i % 2 == 0;
      const int size = of_leaf ? kNodesOfLeaf : kNodesOfSpine * 3 / 16;
      for (int index = 0; index < size; ++index) {
        GangTerms terms;
        terms.size = size;
        terms.require_level = of_leaf ? "leaf" : "spine";
        StoredPod pod = MakePod(absl::StrCat("waiting-", i), index, 1 + i % scenario.kinds, terms);
        pod.member->gate = 0;
        pods_.push_back(std::make_shared<const StoredPod>(std::move(pod)));
      }
    }
  }

  // Some of what runs is another pod now, as when ranks fail and come back.
  void Change(int round) {
    for (size_t i = 0; i < 8; ++i) {
      const size_t pod = (static_cast<size_t>(round) * 8 + i) % running_.size();
      pods_[first_running_ + pod] = Running(pod, round + 1);
    }
  }

  const std::vector<PodValue>& pods() const { return pods_; }
  ClusterRoom& room() { return *room_; }
  double tree_took() const { return tree_took_; }

 private:
  PodValue Running(size_t i, int life) const {
    const auto index = static_cast<int>(i % kPodsOfRunning);
    GangTerms terms;
    terms.size = kPodsOfRunning;
    StoredPod pod =
        MakePod(absl::StrCat("running-", i / kPodsOfRunning), index, 64, std::move(terms));
    pod.uid += absl::StrCat("-", life);
    pod.member->released = true;
    pod.member->rank = index;
    pod.node = running_[i];
    return std::make_shared<const StoredPod>(std::move(pod));
  }

  NodeTree tree_;
  double tree_took_ = 0;  // to build
  std::unique_ptr<ClusterRoom> room_;
  std::vector<PodValue> pods_;
  std::vector<std::string> running_;  // nodes
  size_t first_running_ = 0;
};

struct Cost {
  double tree = 0;
  double first = 0;
  double later = 0;  // mean
};

enum class What { kPlanned, kKeptFree, kReasons };

Cost Measure(const Scenario& scenario, What what) {
  Cluster cluster(scenario);
  Turns turns;
  GangMachine::Options options;
  if (what == What::kKeptFree) options.reserve_after = absl::Minutes(10);
  options.explain = [&](const Gang& gang) {
    return what == What::kReasons && turns.Take(gang.key);
  };
  GangMachine machine(options);
  Cost cost;
  cost.tree = cluster.tree_took();
  for (int round = 0; round <= kRounds; ++round) {
    if (round > 0) cluster.Change(round);
    const absl::Time now = kStart + absl::Hours(1) + absl::Seconds(round);
    const double begin = CpuMilliseconds();
    const GangMachine::Step step = machine.Next(cluster.pods(), cluster.room(), now);
    const double took = CpuMilliseconds() - begin;
    (round == 0 ? cost.first : cost.later) += round == 0 ? took : took / kRounds;
    std::vector<std::string> waiting;
    size_t told = 0;
    for (const Decision& decision : step.decisions) {
      if (decision.state != Decision::State::kWaiting) continue;
      waiting.push_back(decision.gang.key);
      told += decision.message.empty() ? 0 : 1;
    }
    turns.EndRound(waiting, now);
    if (waiting.size() != kGangs || told != (what == What::kReasons ? Turns::kInARound : 0)) {
      std::fprintf(stderr, "planner_bench: %zu gangs wait, and %zu are told why: %s\n",
                   waiting.size(), told, step.decisions.back().message.c_str());
      std::exit(1);
    }
  }
  return cost;
}

int Run() {
  std::printf(
      "| nodes | kinds of pods | the fabric | first round | a later one | with room kept free "
      "| with %zu reasons | a round below %.0f ms |\n|---|---|---|---|---|---|---|---|\n",
      Turns::kInARound, kGoal);
  for (const Scenario& scenario :
       {Scenario{5120, 1}, Scenario{5120, 50}, Scenario{16384, 1}, Scenario{16384, 50}}) {
    const Cost planned = Measure(scenario, What::kPlanned);
    const Cost kept = Measure(scenario, What::kKeptFree);
    const Cost told = Measure(scenario, What::kReasons);
    const double most = std::max({planned.first, planned.later, kept.later, told.later});
    std::printf("| %d | %d | %.0f ms | %.0f ms | %.0f ms | %.0f ms | %.0f ms | %s |\n",
                scenario.nodes, scenario.kinds, planned.tree, planned.first, planned.later,
                kept.later, told.later, most < kGoal ? "yes" : "**no**");
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace railhead::op::gangs

int main() { return railhead::op::gangs::Run(); }
