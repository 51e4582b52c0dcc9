// SPDX-License-Identifier: Apache-2.0
//
// Rails that were lost while the job runs. Both ends of a link report the loss, so only other facts
// show whose NIC failed. A node's agent knows the state of its ports. Without its report no node is
// called broken, because users control what pods report: the finding is a lost path, at the end
// that has lost all of its peers if these still have each other.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "operator/verdict/rules.h"

namespace railhead::op::verdict {
namespace {

using Devices = std::set<std::pair<std::string, std::string>>;  // node and device

// State of one rail as a pod reports it, summed over its ranks.
struct View {
  const JudgedPod* judged;
  std::string device;
  bool down = false;
  int peers = 0;  // peers that the rail is linked to; 0 if not reported
  int lost = 0;   // number of these that are lost
};

std::map<int, View> ViewsOf(const JudgedPod& judged) {
  std::map<int, View> views;
  if (judged.report == nullptr) return views;
  for (const RankReport& rank : judged.report->ranks) {
    for (const UsedRail& rail : rank.used) {
      if (rail.transport == "shm") continue;  // shared memory is not a rail
      View& view = views[rail.rail];
      view.judged = &judged;
      view.device = rail.device;
      view.down = view.down || !rail.up;
      view.peers += rail.peers;
      view.lost += rail.lost_peers;
    }
  }
  return views;
}

// Returns the node agent's entry for this device; null if there is no entry.
const fabric::SeenRail* WordOf(const NodeFacts* node, const std::string& device) {
  if (node == nullptr) return nullptr;
  const auto found = std::find_if(node->rails.begin(), node->rails.end(),
                                  [&](const auto& rail) { return rail.device == device; });
  return found == node->rails.end() ? nullptr : &*found;
}

void TellDown(const PodFacts& pod, int rail, const std::string& device, const std::string& why,
              Findings& findings) {
  findings.push_back(
      MakeRailFinding(Reason::kRailDown, pod.name, OnlyContainer(pod), {rail, pod.node},
                      {absl::StrCat(rail), device, pod.node,
                       why.empty() ? std::string("the node agent reports it unusable") : why}));
}

// Without a runtime report, a pod certainly has the rail that is down only if it has all rails of
// its node. A pod whose runtime has ended uses no rail.
void JudgeByNode(const JudgedPod& judged, const NodeFacts* node, const Devices& just_lost,
                 Findings& findings) {
  const PodFacts& pod = *judged.pod;
  if (node == nullptr || pod.running_since == absl::InfiniteFuture() || node->rails.empty() ||
      judged.heard || ReportMayCome(judged)) {
    return;
  }
  const std::map<std::string, int64_t> devices = DevicesOf(pod);
  if (devices.size() != 1 || devices.begin()->second != static_cast<int64_t>(node->rails.size())) {
    return;
  }
  for (const fabric::SeenRail& rail : node->rails) {
    if (rail.usable || just_lost.contains({pod.node, rail.device})) continue;
    TellDown(pod, rail.rail, rail.device, rail.reason, findings);
  }
}

// Returns whether the loss has lasted kRailPatience and every reporting pod has reported since: the
// agents have had time to report, and a rail that recovers sooner needs no repair.
bool HasLasted(const std::vector<View>& seen, const Pods& pods) {
  absl::Duration lasted = absl::InfiniteDuration();
  for (const View& view : seen) lasted = std::min(lasted, view.judged->unchanged);
  return lasted >= kRailPatience && std::all_of(pods.begin(), pods.end(), [&](const auto* judged) {
           return judged->report == nullptr || judged->age < lasted;
         });
}

// Reports losses that no agent explains. `seen`: views of pods that still have other rails.
void JudgeUnexplained(int rail, const std::vector<View>& seen, Findings& findings) {
  std::vector<const View*> alone;
  for (const View& view : seen) {
    if (view.peers > 0 && view.lost >= view.peers) alone.push_back(&view);
  }
  const bool others_have_peers = alone.size() < seen.size();
  if (alone.empty() || !(others_have_peers || (seen.size() == 1 && seen[0].peers > 1))) {
    alone = {&seen.front()};
  }
  // Known from pods' reports only, so no node is called broken.
  for (const View* view : alone) {
    const PodFacts& pod = *view->judged->pod;
    findings.push_back(MakeRailFinding(
        Reason::kRailPathLost, pod.name, OnlyContainer(pod), {rail, pod.node},
        {absl::StrCat(rail), view->device, pod.node, absl::StrCat(seen.size() - 1)}));
  }
}

}  // namespace

void JudgeLostRails(const Pods& pods, const Cluster& cluster, const JobFacts& job,
                    Findings& findings) {
  std::map<int, std::vector<View>> unexplained;  // by rail
  std::set<int> explained;
  for (const JudgedPod* judged : pods) {
    const NodeFacts* node = NodeOf(*judged->pod, cluster);
    if (node != nullptr) {
      for (const fabric::SeenRail& rail : node->rails) {
        if (!rail.usable) explained.insert(rail.rail);
      }
    }
    if (judged->report == nullptr) {
      if (!TcpIsMeant(*judged->pod, cluster)) JudgeByNode(*judged, node, job.just_lost, findings);
      continue;
    }
    const std::map<int, View> views = ViewsOf(*judged);
    // A pod that has lost all rails was cut off, or lost a peer that is gone.
    const bool all = std::all_of(views.begin(), views.end(),
                                 [](const auto& entry) { return entry.second.down; });
    for (const auto& [rail, view] : views) {
      if (!view.down) continue;
      const fabric::SeenRail* word = WordOf(node, view.device);
      if (word != nullptr && !word->usable) {
        if (job.just_lost.contains({judged->pod->node, view.device})) continue;
        TellDown(*judged->pod, rail, view.device, word->reason, findings);
      } else if (!all) {
        unexplained[rail].push_back(view);
      }
    }
  }
  // The existing pods must be all that see the loss.
  if (!job.comparable && pods.size() > 1) return;
  for (const auto& [rail, seen] : unexplained) {
    if (!explained.contains(rail) && HasLasted(seen, pods)) JudgeUnexplained(rail, seen, findings);
  }
}

}  // namespace railhead::op::verdict
