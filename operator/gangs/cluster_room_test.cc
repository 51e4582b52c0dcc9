// SPDX-License-Identifier: Apache-2.0
//
// What is kept from round to round is what would be counted anew.
#include "operator/gangs/cluster_room.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "operator/gangs/testing/small_cluster.h"
#include "operator/objects/names.h"
#include "placement/node_room.h"

namespace railhead::op::gangs {
namespace {

constexpr int64_t kOne = 1000;

class ChangingCluster {
 public:
  explicit ChangingCluster(unsigned seed) : random_(seed) {
    for (int i = 0; i < 14; ++i) {
      const bool placed = i < 12;
      kube::Json object =
          testing::NodeObject(absl::StrCat("n", i), placed ? absl::StrCat("s", i / 6) : "",
                              placed ? absl::StrCat("l", i / 3) : "");
      if (i % 4 == 0) object["status"]["allocatable"]["rdma/other"] = "2";
      object["metadata"]["labels"]["zone"] = absl::StrCat("z", i % 3);
      nodes_.push_back(std::make_shared<const StoredNode>(*ReadStoredNode(object)));
    }
    tree_ = BuildTree(nodes_);
    room_ = std::make_unique<ClusterRoom>(&tree_);
    room_->Update(pods_, promises_);
  }

  void Change() {
    switch (Draw(0, 9)) {
      case 0:
        if (!pods_.empty())
          pods_.erase(pods_.begin() + Draw(0, static_cast<int>(pods_.size()) - 1));
        break;
      case 1:
        ChangeNode();
        break;
      case 2:
        Bind();
        break;
      case 3:
      case 4: {
        // As the planner does, in the middle of a round.
        const PodValue pod = MakePod();
        const auto node = static_cast<size_t>(Draw(0, 13));
        room_->Take(node, pod);
        trials_.emplace_back(node, pod);
        return;
      }
      case 5:
        if (trials_.empty()) return;
        room_->GiveBack(trials_.back().first, trials_.back().second);
        trials_.pop_back();
        return;
      default:
        pods_.push_back(MakePod());
        break;
    }
    trials_.clear();
    room_->Update(pods_, promises_);
  }

  // Of gangs of many kinds, more than are kept at once.
  void Check() {
    ClusterRoom anew(&tree_, pods_, promises_);
    for (const auto& [node, pod] : trials_) anew.Take(node, pod);
    for (int i = 0; i < 12; ++i) {
      const Gang gang = MakeGang();
      std::set<std::string> refused;
      if (Draw(0, 2) == 0) refused.insert(absl::StrCat("n", Draw(0, 15)));
      const Outside outside = MakeOutside();
      const fabric::FabricModel fresh = anew.ModelFor(gang, refused, outside);
      const std::vector<int> rooms = CountBySums(gang, fresh);
      for (const std::optional<int> level :
           {std::optional<int>(), std::optional(0), std::optional(1)}) {
        const int64_t most = MostIn(rooms, level);
        for (const int64_t pods : {int64_t{1}, most / 2 + 1, most + 1}) {
          const auto asked = static_cast<int>(pods);
          ASSERT_EQ(room_->HasRoom(gang, asked, refused, outside, level), most >= pods);
        }
        ASSERT_EQ(room_->MostRoomWhenFree(gang, level), anew.MostRoomWhenFree(gang, level));
      }
      const fabric::FabricModel& kept = room_->ModelFor(gang, refused, outside);
      for (size_t node = 0; node < kept.nodes.size(); ++node) {
        ASSERT_EQ(kept.nodes[node], fresh.nodes[node])
            << kept.nodes[node].name << ": " << kept.nodes[node].unschedulable << " / "
            << fresh.nodes[node].unschedulable;
      }
      ASSERT_EQ(kept, fresh);
      const std::vector<NodeOutlook> outlook = room_->OutlookFor(gang, refused);
      const std::vector<NodeOutlook> outlook_anew = anew.OutlookFor(gang, refused);
      const fabric::FabricModel inside = anew.ModelFor(gang, refused, {});
      const std::vector<int> now = CountBySums(gang, inside);
      for (size_t node = 0; node < outlook.size(); ++node) {
        ASSERT_EQ(outlook[node].now, now[node]);
        ASSERT_EQ(outlook[node].at_best, outlook_anew[node].at_best);
        ASSERT_GE(outlook[node].at_best, refused.contains(inside.nodes[node].name) ? 0 : now[node]);
      }
    }
  }

 private:
  int Draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  std::shared_ptr<StoredPod> Draft() {
    auto pod = std::make_shared<StoredPod>();
    pod->space = "train";
    pod->uid = pod->name = absl::StrCat("p", ++serial_);
    Resources requests = {{"pods", kOne}, {"cpu", Draw(1, 40) * kOne}};
    if (Draw(0, 4) > 0) requests["rdma/hca"] = Draw(1, 4) * kOne;
    if (Draw(0, 4) > 0) requests["nvidia.com/gpu"] = Draw(1, 4) * kOne;
    if (Draw(0, 9) == 0) requests["rdma/other"] = kOne;
    if (Draw(0, 19) == 0) requests["rdma/nowhere"] = kOne;
    pod->requests = std::move(requests);
    Claims claims;
    if (Draw(0, 4) == 0)
      claims.ports.push_back({Draw(1, 2), "TCP", Draw(0, 1) == 0 ? "" : "1.2.3.4"});
    pod->labels = {{"app", absl::StrCat("a", Draw(0, 2))}};
    if (Draw(0, 6) == 0) {
      KeepApart apart;
      apart.selector.labels = {{"app", absl::StrCat("a", Draw(0, 2))}};
      apart.spaces = {"train"};
      apart.topology_key = Draw(0, 1) == 0 ? kHostname : "zone";
      claims.apart.push_back(std::move(apart));
    }
    pod->claims = std::move(claims);
    return pod;
  }

  // One that is on a node, or on its way there, or waits.
  PodValue MakePod() {
    std::shared_ptr<StoredPod> pod = Draft();
    const std::string node = absl::StrCat("n", Draw(0, 15));  // two of which there are not
    switch (Draw(0, 3)) {
      case 0:
        pod->member.emplace();
        pod->member->gate = 0;
        if (Draw(0, 1) == 0) promises_[pod->uid].node = node;
        break;
      case 1:
        pod->member.emplace();
        pod->member->released = true;
        pod->member->rules.Change([&node](NodeRules& rules) { rules.selector[kHostname] = node; });
        break;
      default:
        pod->node = node;
        break;
    }
    return pod;
  }

  Gang MakeGang() {
    std::shared_ptr<StoredPod> pod = Draft();
    pod->member.emplace();
    pod->member->one_on_a_node = Draw(0, 3) == 0;
    GangTerms terms;
    terms.same_rails = Draw(0, 3) == 0;
    pod->member->terms = std::move(terms);
    NodeRules rules;
    if (Draw(0, 3) == 0) rules.selector["zone"] = absl::StrCat("z", Draw(0, 2));
    if (Draw(0, 3) == 0) rules.tolerations.push_back({"", "Exists", "", ""});
    pod->member->rules = std::move(rules);
    Gang gang;
    gang.gated = {pod};
    gang.requests = pod->requests;
    if (Draw(0, 1) == 0) gang.released.push_back({pod, absl::StrCat("n", Draw(0, 15)), 0});
    return gang;
  }

  Outside MakeOutside() {
    Outside outside;
    for (int i = Draw(0, 2); i > 0; --i) {
      auto exclusion = std::make_shared<Exclusion>();
      exclusion->why = absl::StrCat("because ", i);
      for (int node = 0; node < 14; ++node) exclusion->nodes.push_back(Draw(0, 3) == 0 ? 1 : 0);
      outside.push_back(std::move(exclusion));
    }
    return outside;
  }

  void ChangeNode() {
    const auto i = static_cast<size_t>(Draw(0, 13));
    auto node = std::make_shared<StoredNode>(*nodes_[i]);
    switch (Draw(0, 5)) {
      case 0:
        node->cordoned = !node->cordoned;
        break;
      case 1:
        node->ready = !node->ready;
        break;
      case 2:
        node->taints =
            Draw(0, 1) == 0 ? std::vector<Taint>() : std::vector<Taint>{{"t", "", "NoSchedule"}};
        break;
      case 3:
        node->allocatable["cpu"] = Draw(0, 96) * kOne;
        break;
      case 4:
        node->used_rails = {Draw(0, 3), Draw(4, 7)};
        break;
      default:
        Labels labels = node->labels.ToMap();
        labels["zone"] = absl::StrCat("z", Draw(0, 2));
        node->labels = labels;
        break;
    }
    nodes_[i] = std::move(node);
    const std::optional<std::vector<size_t>> changed = ReplaceNodes(nodes_, tree_);
    ASSERT_TRUE(changed.has_value());
    ASSERT_EQ(changed->size(), 1U);
    ASSERT_TRUE(room_->Refresh(changed->front()));
  }

  // A pod that waits has been bound: it is another value of the same pod.
  void Bind() {
    for (PodValue& pod : pods_) {
      if (!pod->node.empty()) continue;
      auto bound = std::make_shared<StoredPod>(*pod);
      bound->node = absl::StrCat("n", Draw(0, 13));
      promises_.erase(bound->uid);
      pod = std::move(bound);
      return;
    }
  }

  std::string NodeOf(const StoredPod& pod) const {
    if (!pod.node.empty()) return pod.node;
    if (const auto promise = promises_.find(pod.uid); promise != promises_.end()) {
      return promise->second.node;
    }
    const auto hostname = pod.member->rules->selector.find(kHostname);
    return hostname == pod.member->rules->selector.end() ? "" : hostname->second;
  }

  // Of each node how many pods of the gang fit, by the objects' amounts where the model lets any
  // go; with sameRails, how many of them get the same rails.
  std::vector<int> CountBySums(const Gang& gang, const fabric::FabricModel& model) const {
    const StoredPod& like = *gang.gated.front();
    std::map<std::string, Resources> used;
    for (const PodValue& pod : pods_) Add(*pod->requests, used[NodeOf(*pod)]);
    for (const auto& [node, pod] : trials_) Add(*pod->requests, used[model.nodes[node].name]);
    placement::PlacementRequest request;
    request.gpus_per_pod = GpusIn(*like.requests);
    request.hcas_per_pod = HcasIn(*like.requests, RdmaResources());
    std::vector<int> rooms;
    for (size_t i = 0; i < model.nodes.size(); ++i) {
      const fabric::FabricNode& node = model.nodes[i];
      int64_t room = like.member->one_on_a_node ? 1 : std::numeric_limits<int>::max();
      for (const auto& [name, amount] : *like.requests) {
        const Resources& all = tree_.nodes[i]->allocatable;
        const int64_t has = all.contains(name) ? all.at(name) : 0;
        const Resources& in_use = used[node.name];
        const int64_t taken = in_use.contains(name) ? in_use.at(name) : 0;
        room = std::min(room, std::max<int64_t>(0, has - taken) / amount);
      }
      if (!node.unschedulable.empty()) room = 0;
      if (request.gpus_per_pod == 0 && request.hcas_per_pod == 0) room = 0;
      EXPECT_EQ(placement::RoomOnNode(node, request).pods, room) << node.name;
      // A second pod gets the same rails only if there are more HCAs than rails.
      const int offered = HcasIn(tree_.nodes[i]->allocatable, RdmaResources());
      if (like.member->terms->same_rails && request.hcas_per_pod > 0 &&
          offered <= tree_.model.nodes[i].hcas) {
        room = std::min<int64_t>(room, 1);
      }
      rooms.push_back(static_cast<int>(room));
    }
    return rooms;
  }

  int64_t MostIn(const std::vector<int>& rooms, std::optional<int> level) const {
    std::map<int, int64_t> of_domain;
    const std::vector<std::vector<int>> domains = fabric::DomainsOfNodes(tree_.model);
    for (size_t i = 0; i < rooms.size(); ++i) {
      of_domain[level ? domains[static_cast<size_t>(*level)][i] : 0] += rooms[i];
    }
    int64_t most = 0;
    for (const auto& [domain, room] : of_domain) most = std::max(most, room);
    return most;
  }

  std::mt19937 random_;
  int serial_ = 0;
  std::vector<NodeValue> nodes_;
  std::vector<PodValue> pods_;
  Promises promises_;
  std::vector<std::pair<size_t, PodValue>> trials_;
  NodeTree tree_;
  std::unique_ptr<ClusterRoom> room_;
};

TEST(ClusterRoom, WhatIsKeptIsWhatWouldBeCountedAnew) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    ChangingCluster cluster(seed);
    for (int step = 0; step < 60; ++step) {
      for (int change = 0; change < 3; ++change) cluster.Change();
      cluster.Check();
      if (::testing::Test::HasFatalFailure()) FAIL() << "at step " << step;
    }
  }
}

// A change log that is never cut would grow for ever.
TEST(ClusterRoom, ThousandsOfRoundsAreNoneTooMany) {
  ChangingCluster cluster(1);
  cluster.Check();
  for (int step = 0; step < 5000; ++step) cluster.Change();
  cluster.Check();
}

NodeValue OneNode(const std::string& name, const std::string& leaf) {
  return std::make_shared<const StoredNode>(*ReadStoredNode(testing::NodeObject(name, "s", leaf)));
}

TEST(ReplaceNodes, ANodeThatMovesGoesOrComesNeedsAnotherTree) {
  const std::vector<NodeValue> nodes = {OneNode("a", "l0"), OneNode("b", "l1")};
  NodeTree tree = BuildTree(nodes);
  EXPECT_EQ(ReplaceNodes(nodes, tree), std::vector<size_t>());
  EXPECT_EQ(ReplaceNodes({nodes[0]}, tree), std::nullopt);
  EXPECT_EQ(ReplaceNodes({nodes[0], OneNode("c", "l1")}, tree), std::nullopt);
  EXPECT_EQ(ReplaceNodes({nodes[0], OneNode("b", "l0")}, tree), std::nullopt);
  EXPECT_EQ(tree.nodes[1], nodes[1]);
  auto cordoned = std::make_shared<StoredNode>(*nodes[1]);
  cordoned->cordoned = true;
  EXPECT_EQ(ReplaceNodes({nodes[0], cordoned}, tree), std::vector<size_t>{1});
  EXPECT_EQ(tree.nodes[1], cordoned);
}

TEST(ClusterRoom, AResourceThatNoNodeHadNeedsAnotherRoom) {
  NodeTree tree = BuildTree({OneNode("a", "l0")});
  ClusterRoom room(&tree);
  auto more = std::make_shared<StoredNode>(*tree.nodes[0]);
  more->allocatable["example.com/new"] = kOne;
  tree.nodes[0] = more;
  EXPECT_FALSE(room.Refresh(0));
}

}  // namespace
}  // namespace railhead::op::gangs
