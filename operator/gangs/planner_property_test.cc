// SPDX-License-Identifier: Apache-2.0
//
// Clusters, gangs and failures drawn at random: what must hold after every decision, whatever
// happened before.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "operator/gangs/planner.h"
#include "operator/gangs/testing/small_cluster.h"
#include "operator/objects/names.h"

namespace railhead::op::gangs {
namespace {

using kube::Json;
using testing::PodSpec;
using testing::SmallCluster;
using State = Decision::State;

class Simulation {
 public:
  explicit Simulation(uint32_t seed) : random_(seed) {
    const int leaves = Draw(1, 6);
    for (int leaf = 0; leaf < leaves; ++leaf) {
      const int count = Draw(1, 5);
      for (int i = 0; i < count; ++i) {
        const std::string name = absl::StrCat("n", leaf, i);
        if (Draw(0, 9) == 0) {
          cluster_.AddNode(name, "", "");
        } else {
          cluster_.AddNode(name, absl::StrCat("s", leaf / 3), absl::StrCat("l", leaf));
        }
      }
    }
  }

  void Step() {
    switch (Draw(0, 6)) {
      case 0:
      case 1:
        Arrive();
        break;
      case 2:
        End();
        break;
      case 3:
        LosePod();
        break;
      case 4:
        Cordon();
        break;
      case 5:
        Outsider();
        break;
      default:
        break;
    }
    // Some leaders end in the middle of what they do.
    const std::vector<Decision> decisions = cluster_.Decide();
    ASSERT_NO_FATAL_FAILURE(Check(decisions));
    if (Draw(0, 3) == 0) {
      ReleaseSome(decisions);
      // Another one sees what it did, and finishes that.
      const std::vector<Decision> again = cluster_.Decide();
      ASSERT_NO_FATAL_FAILURE(Check(again));
      for (const Decision& decision : decisions) {
        if (decision.state != State::kPlaced) continue;
        const auto same = std::find_if(again.begin(), again.end(), [&](const Decision& other) {
          return other.gang.key == decision.gang.key;
        });
        ASSERT_NE(same, again.end());
        // Its room is still there, and nobody comes before it: it is whole after this.
        if (same->gang.begun() && !decision.gang.begun()) {
          EXPECT_NE(same->state, State::kWaiting) << same->message;
        }
      }
      cluster_.ReleaseAll(again);
    } else {
      cluster_.ReleaseAll(decisions);
    }
    // There is room for everything that was released.
    EXPECT_EQ(cluster_.Bind(), 0);
    for (const auto& [name, node] : cluster_.nodes) EXPECT_LE(cluster_.UsedHcas(name), 8);
    CheckPartial();
  }

 private:
  int Draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  void Arrive() {
    PodSpec spec;
    const std::string name = absl::StrCat("g", ++gangs_);
    spec.size = Draw(1, 9);
    spec.hcas = 1 << Draw(0, 3);
    spec.priority = Draw(0, 2);
    spec.second = gangs_;
    if (Draw(0, 4) == 0) spec.require_level = Draw(0, 1) == 0 ? "leaf" : "spine";
    spec.gang = name;
    if (Draw(0, 1) == 0) spec.owner = name;
    // Some are not all there yet, and some never are.
    const int there = Draw(0, 5) == 0 ? Draw(1, spec.size) : spec.size;
    for (int i = 0; i < there; ++i) {
      spec.name = absl::StrCat(name, "-", i);
      spec.index = spec.owner.empty() ? -1 : i;
      cluster_.AddPod(spec);
    }
    sizes_[name] = spec;
  }

  std::string AnyGang() {
    if (sizes_.empty()) return "";
    auto gang = sizes_.begin();
    std::advance(gang, Draw(0, static_cast<int>(sizes_.size()) - 1));
    return gang->first;
  }

  void End() {
    const std::string gang = AnyGang();
    std::erase_if(cluster_.pods, [&](const auto& pod) {
      return kube::StringAt(pod.second, {"metadata", "labels", kGangLabel}) == gang;
    });
    sizes_.erase(gang);
  }

  // A pod ends, and comes back gated; or comes for the first time.
  void LosePod() {
    const std::string gang = AnyGang();
    if (gang.empty()) return;
    PodSpec spec = sizes_[gang];
    const int index = Draw(0, spec.size - 1);
    spec.name = absl::StrCat(gang, "-", index);
    spec.index = spec.owner.empty() ? -1 : index;
    cluster_.AddPod(spec);
  }

  void Cordon() {
    auto node = cluster_.nodes.begin();
    std::advance(node, Draw(0, static_cast<int>(cluster_.nodes.size()) - 1));
    node->second["spec"]["unschedulable"] = Draw(0, 1) == 0;
  }

  // A pod that is nobody's gang takes what it finds.
  void Outsider() {
    auto node = cluster_.nodes.begin();
    std::advance(node, Draw(0, static_cast<int>(cluster_.nodes.size()) - 1));
    const int hcas = Draw(1, 8);
    if (cluster_.UsedHcas(node->first) + hcas > 8) return;
    const std::string name = absl::StrCat("other", ++outsiders_);
    cluster_.AddPod({.name = name, .hcas = hcas});
    cluster_.pods[name]["spec"]["nodeName"] = node->first;
  }

  void ReleaseSome(const std::vector<Decision>& decisions) {
    int left = Draw(0, 6);
    for (const Decision& decision : decisions) {
      std::vector<Assignment> assignments = decision.assignments;
      std::shuffle(assignments.begin(), assignments.end(), random_);
      for (const Assignment& assignment : assignments) {
        if (left-- <= 0) return;
        ASSERT_TRUE(cluster_.Release(assignment, decision.placement));
      }
    }
  }

  // How many pods of the gang would fit on each node, by the objects alone.
  std::map<std::string, int> RoomOf(const PodSpec& spec,
                                    const std::map<std::string, int>& taken) const {
    std::map<std::string, int> room;
    for (const auto& [name, node] : cluster_.nodes) {
      if (node["spec"].value("unschedulable", false)) continue;
      int used = cluster_.UsedHcas(name);
      if (const auto more = taken.find(name); more != taken.end()) used += more->second;
      room[name] = (8 - used) / spec.hcas;
    }
    return room;
  }

  std::string DomainOf(const std::string& node, const std::string& level) const {
    return kube::StringAt(cluster_.nodes.at(node),
                          {"metadata", "labels", absl::StrCat("topology.railhead.io/", level)});
  }

  // No decision gives away what is not there, and no gang waits that would fit.
  void Check(const std::vector<Decision>& decisions) {
    // Pods on their way to their nodes hold them already.
    std::map<std::string, int> taken;
    for (const auto& [name, pod] : cluster_.pods) {
      const std::string node = kube::StringAt(pod, {"spec", "nodeSelector", kHostname});
      if (node.empty() || !pod["spec"].value("nodeName", "").empty()) continue;
      taken[node] += sizes_.at(kube::StringAt(pod, {"metadata", "labels", kGangLabel})).hcas;
    }
    for (const Decision& decision : decisions) {
      const PodSpec& spec = sizes_.at(decision.gang.gated.empty() && decision.gang.released.empty()
                                          ? decision.gang.name
                                          : Label(decision.gang));
      std::map<std::string, int> room = RoomOf(spec, taken);
      if (decision.state == State::kPlaced) {
        ASSERT_EQ(decision.assignments.size(), decision.gang.gated.size());
        if (!decision.gang.begun()) {
          ASSERT_GE(static_cast<int>(decision.gang.gated.size()), spec.size);
        }
        for (const Assignment& assignment : decision.assignments) {
          ASSERT_GT(room[assignment.node]--, 0) << decision.gang.name;
          taken[assignment.node] += spec.hcas;
        }
        CheckOrder(decision, spec);
      } else if (decision.state == State::kWaiting) {
        std::map<std::string, int> of_domain;
        for (const auto& [node, pods] : room) {
          if (!MayUse(decision.gang, spec, node)) continue;
          of_domain[spec.require_level.empty() ? "" : DomainOf(node, spec.require_level)] += pods;
        }
        for (const auto& [domain, pods] : of_domain) {
          EXPECT_LT(pods, static_cast<int>(decision.gang.gated.size())) << decision.message;
        }
        EXPECT_FALSE(decision.message.empty());
      }
    }
  }

  static std::string Label(const Gang& gang) {
    const PodValue& pod = gang.gated.empty() ? gang.released.front().pod : gang.gated.front();
    return pod->member->terms->gang;
  }

  // With a required level: not on nodes without a place, nor outside of where the gang is already.
  bool MayUse(const Gang& gang, const PodSpec& spec, const std::string& node) const {
    if (spec.require_level.empty()) return true;
    const std::string domain = DomainOf(node, spec.require_level);
    if (gang.released.empty()) return !domain.empty();
    return std::any_of(gang.released.begin(), gang.released.end(), [&](const Released& released) {
      return DomainOf(released.node, spec.require_level) == domain;
    });
  }

  // Ranks that follow each other are in one leaf as long as it has any of them.
  void CheckOrder(const Decision& decision, const PodSpec& spec) const {
    std::vector<std::string> leaves;
    std::set<int> ranks;
    std::set<std::string> required;
    for (const Assignment& assignment : decision.assignments) {
      const std::string leaf = DomainOf(assignment.node, "leaf");
      if (leaves.empty() || leaves.back() != leaf) leaves.push_back(leaf);
      EXPECT_TRUE(ranks.insert(*assignment.rank).second);
      if (!spec.require_level.empty()) {
        required.insert(DomainOf(assignment.node, spec.require_level));
      }
    }
    EXPECT_EQ(leaves.size(), std::set<std::string>(leaves.begin(), leaves.end()).size());
    EXPECT_LE(required.size(), 1U);
    for (const Released& released : decision.gang.released) {
      if (released.rank) {
        EXPECT_FALSE(ranks.contains(*released.rank)) << decision.gang.name;
      }
    }
  }

  // After a round without trouble a gang that is partly gated has no room for the rest.
  void CheckPartial() {
    for (const Decision& decision : cluster_.Decide()) {
      EXPECT_NE(decision.state, State::kPlaced) << "what fits was placed before";
    }
  }

  std::mt19937 random_;
  SmallCluster cluster_;
  std::map<std::string, PodSpec> sizes_;  // of the gangs that there are
  int gangs_ = 0;
  int outsiders_ = 0;
};

TEST(PlannerProperty, NoRoomIsGivenTwiceNoGangIsHalfPlacedAndWhatFitsIsPlaced) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Simulation simulation(seed);
    for (int step = 0; step < 40; ++step) {
      simulation.Step();
      if (::testing::Test::HasFailure()) FAIL() << "at step " << step;
    }
  }
}

}  // namespace
}  // namespace railhead::op::gangs
