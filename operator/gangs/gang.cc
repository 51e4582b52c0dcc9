// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/gang.h"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "fabric/natural_order.h"
#include "operator/objects/names.h"

namespace railhead::op::gangs {
namespace {

// By the index where there is one; people number the pods that they make themselves.
bool RankLess(const PodValue& a, const PodValue& b) {
  const int first = a->member->index.value_or(-1);
  const int second = b->member->index.value_or(-1);
  if (first != second) return first < second;
  return fabric::NaturalLess(a->name, b->name);
}

void AddPod(const PodValue& pod, const Promises& promises,
            const std::map<std::string, std::string>& node_of_hostname, Gang& gang) {
  const Membership& member = *pod->member;
  gang.priority = std::max(gang.priority, member.terms->priority);
  gang.created = std::min(gang.created, member.created);
  if (pod->succeeded) {
    ++gang.succeeded;
    gang.ended.insert(pod->uid);
    if (member.rank) gang.ended_ranks.insert(*member.rank);
    return;
  }
  if (pod->leaving) {
    if (!pod->node.empty() && member.released) gang.lost.push_back({pod, pod->node, member.rank});
    return;
  }
  if (!pod->node.empty()) {
    gang.released.push_back({pod, pod->node, member.rank, member.released});
    return;
  }
  if (const auto promise = promises.find(pod->uid); promise != promises.end()) {
    gang.released.push_back({pod, promise->second.node, promise->second.rank});
    return;
  }
  if (member.native) {
    gang.released.push_back({pod, "", member.rank, false});
    return;
  }
  if (member.gate) {
    gang.waits_since = std::max(gang.waits_since, member.created);
    gang.gated.push_back(pod);
    return;
  }
  const auto hostname = member.rules->selector.find(kHostname);
  const auto node = hostname == member.rules->selector.end()
                        ? node_of_hostname.end()
                        : node_of_hostname.find(hostname->second);
  gang.released.push_back(
      {pod, node == node_of_hostname.end() ? "" : node->second, member.rank, member.released});
}

// Returns whether both request the same nodes. `chosen`: their selectors are others' choices.
bool SameRules(const NodeRules& a, const NodeRules& b, bool chosen) {
  return (chosen || a.selector == b.selector) && a.terms == b.terms && a.has_terms == b.has_terms &&
         a.tolerations == b.tolerations;
}

// As by GangKeyOf.
bool OfSameGang(const StoredPod& a, const StoredPod& b) {
  const auto last = [](const Membership& member) -> const std::string& {
    return member.terms->group.empty() ? member.terms->owner.uid : member.terms->group;
  };
  return a.space == b.space && a.member->terms->gang == b.member->terms->gang &&
         last(*a.member) == last(*b.member) && a.member->terms->attempt == b.member->terms->attempt;
}

// Returns the maximum request for each resource. Equal pods share one value.
SharedValue<Resources> MostOf(const std::vector<PodValue>& pods) {
  SharedValue<Resources> most = pods.front()->requests;
  for (const PodValue& pod : pods) {
    if (pod->requests == most) continue;
    Resources joined = *most;
    for (const auto& [name, amount] : *pod->requests) {
      joined[name] = std::max(joined[name], amount);
    }
    most = SharedValue<Resources>(std::move(joined));
  }
  return most;
}

// Sets `beside` of each gang: the pods of its group that are not members.
void CountBeside(const std::vector<const StoredPod*>& pods, std::vector<Gang>& gangs,
                 const std::vector<std::string>& groups) {
  if (pods.empty()) return;
  std::unordered_map<std::string, int> count;  // by namespace and group
  for (const StoredPod* pod : pods) ++count[absl::StrCat(pod->space, "/", pod->beside)];
  for (size_t i = 0; i < gangs.size(); ++i) {
    const auto found = count.find(groups[i]);
    if (found != count.end()) gangs[i].beside = found->second;
  }
}

std::string LineageOf(const StoredPod& pod) {
  const Membership& member = *pod.member;
  return absl::StrCat(pod.space, "/", member.terms->gang, "/",
                      member.terms->group.empty() ? member.terms->owner.uid : member.terms->group);
}

std::string Field(const char* annotation) {
  return absl::StrCat("metadata.annotations[", annotation, "]");
}

}  // namespace

bool Gang::begun() const {
  return std::any_of(released.begin(), released.end(),
                     [](const Released& pod) { return pod.by_us; });
}

std::string GangKeyOf(const StoredPod& pod) {
  const std::string& attempt = pod.member->terms->attempt;
  return absl::StrCat(LineageOf(pod), attempt.empty() ? "" : "@", attempt);
}

std::vector<Gang> GangsOf(const std::vector<PodValue>& pods, const Promises& promises,
                          const std::map<std::string, std::string>& node_of_hostname) {
  std::vector<Gang> gangs;
  std::vector<std::string> groups;  // of each, with its namespace
  std::vector<const StoredPod*> beside;
  std::unordered_map<std::string, size_t> by_key;
  const StoredPod* last = nullptr;  // pods of a gang often stand side by side
  size_t at = 0;
  for (const PodValue& pod : pods) {
    if (!pod->member) {
      if (!pod->beside.empty()) beside.push_back(pod.get());
      continue;
    }
    const Membership& member = *pod->member;
    if (last == nullptr || !OfSameGang(*last, *pod)) {
      std::string key = GangKeyOf(*pod);
      const auto [known, is_new] = by_key.try_emplace(key, gangs.size());
      at = known->second;
      if (is_new) {
        Gang& gang = gangs.emplace_back();
        gang.key = std::move(key);
        gang.lineage = LineageOf(*pod);
        groups.push_back(
            absl::StrCat(pod->space, "/", member.terms->group, "@", member.terms->attempt));
        gang.space = pod->space;
        gang.name =
            member.terms->owner.name.empty() ? member.terms->gang : member.terms->owner.name;
        if (!member.terms->group_name.empty()) gang.name = member.terms->group_name;
        gang.owner = member.terms->owner;
        gang.size = member.terms->size;
        gang.priority = member.terms->priority;
        gang.created = member.created;
      }
    }
    last = pod.get();
    AddPod(pod, promises, node_of_hostname, gangs[at]);
  }
  CountBeside(beside, gangs, groups);
  for (Gang& gang : gangs) {
    std::stable_sort(gang.gated.begin(), gang.gated.end(), RankLess);
    if (!gang.gated.empty()) gang.requests = MostOf(gang.gated);
  }
  const auto order = [](const Gang& gang) {
    return std::tuple<bool, int64_t, absl::Time, const std::string&>(
        !gang.begun(), -int64_t{gang.priority}, gang.created, gang.key);
  };
  std::sort(gangs.begin(), gangs.end(),
            [&](const Gang& a, const Gang& b) { return order(a) < order(b); });
  return gangs;
}

std::vector<int> FreeRanks(const Gang& gang) {
  std::set<int> taken;
  for (const Released& pod : gang.released) {
    if (pod.rank) taken.insert(*pod.rank);
  }
  std::vector<int> free;
  std::vector<int> ended;
  for (int rank = 0; rank < gang.size; ++rank) {
    if (taken.contains(rank)) continue;
    (gang.ended_ranks.contains(rank) ? ended : free).push_back(rank);
  }
  free.insert(free.end(), ended.begin(), ended.end());
  return free;
}

std::vector<int> RanksOf(const Gang& gang) {
  const std::vector<int> free = FreeRanks(gang);
  std::vector<int> ranks;
  size_t next = 0;
  int beyond = gang.size;  // for more pods than the gang has ranks
  for (const PodValue& pod : gang.gated) {
    if (pod->member->index) {
      ranks.push_back(*pod->member->index);
    } else if (next < free.size()) {
      ranks.push_back(free[next++]);
    } else {
      ranks.push_back(beyond++);
    }
  }
  return ranks;
}

std::string MasterOf(const Gang& gang) {
  for (const Released& pod : gang.released) {
    if (pod.rank == 0) return pod.pod->member->dns_name;
  }
  const std::vector<int> ranks = RanksOf(gang);
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] == 0) return gang.gated[i]->member->dns_name;
  }
  return "";
}

std::string WhyNotComplete(const Gang& gang) {
  if (gang.gated.empty()) return "";
  const StoredPod& first = *gang.gated.front();
  const bool chosen = IsChosenByOthers(gang);
  for (const PodValue& pod : gang.gated) {
    if (!pod->member->too_large.empty()) {
      return absl::StrCat("pod ", pod->name, ": ", pod->member->too_large);
    }
    if (pod->member->terms->size != first.member->terms->size) {
      return absl::StrCat(Field(kGangSize), " is ", first.member->terms->size, " of pod ",
                          first.name, " and ", pod->member->terms->size, " of pod ", pod->name,
                          "; recreate them with the same size");
    }
    if (pod->member->other_gates) {
      return absl::StrCat("pod ", pod->name,
                          " has other scheduling gates; it is placed when their controllers have "
                          "removed them");
    }
    const Membership& member = *pod->member;
    if (!SameRules(*member.rules, *first.member->rules, chosen) ||
        member.terms->require_level != first.member->terms->require_level ||
        member.terms->pattern != first.member->terms->pattern ||
        member.one_on_a_node != first.member->one_on_a_node) {
      return absl::StrCat("pods ", first.name, " and ", pod->name,
                          " do not request the same nodes (spec.nodeSelector, spec.affinity, "
                          "spec.tolerations, ",
                          kRequireLevel, ", ", kPattern,
                          "); recreate them with the same values, or with the label ", kGangLabel,
                          ": \"false\"");
    }
  }
  const size_t there = gang.gated.size() + gang.released.size() +
                       static_cast<size_t>(gang.succeeded) + static_cast<size_t>(gang.beside);
  if (gang.begun() || there >= static_cast<size_t>(first.member->terms->size)) return "";
  const absl::string_view in_order = first.member->terms->kind->parts_in_order;
  return absl::StrCat(
      there, " of ", first.member->terms->size, " pods exist (", Field(kGangSize),
      "); the gang is placed when all exist",
      // With the label true each part is a gang.
      !in_order.empty() && first.member->terms->gang != "true"
          ? absl::StrCat(", which never happens ", in_order, "; in that case set the label ",
                         kGangLabel, " to \"true\"")
          : "");
}

bool IsTooLarge(const Gang& gang) {
  return std::any_of(gang.gated.begin(), gang.gated.end(),
                     [](const PodValue& pod) { return !pod->member->too_large.empty(); });
}

bool WaitsInScheduler(const Gang& gang) {
  return std::any_of(gang.released.begin(), gang.released.end(), [](const Released& released) {
    return released.pod->member->native && released.pod->node.empty();
  });
}

bool IsChosenByOthers(const Gang& gang) {
  return !gang.gated.empty() &&
         std::all_of(gang.gated.begin(), gang.gated.end(), [](const PodValue& pod) {
           return pod->member->rules->selector.contains(kHostname);
         });
}

placement::PlacementRequest RequestOf(const Gang& gang, const RdmaResources& rdma) {
  const StoredPod& pod = *gang.gated.front();
  placement::PlacementRequest request;
  request.name = gang.name;
  request.pods = static_cast<int>(gang.gated.size());
  request.gpus_per_pod = GpusIn(*gang.requests);
  request.hcas_per_pod = HcasIn(*gang.requests, rdma);
  request.require_level = pod.member->terms->require_level;
  request.prefer_level = pod.member->terms->prefer_level;
  request.same_rails = pod.member->terms->same_rails;
  if (pod.member->terms->pattern == "tree") request.pattern = placement::Pattern::kTree;
  if (pod.member->terms->pattern == "alltoall") request.pattern = placement::Pattern::kAllToAll;
  return request;
}

}  // namespace railhead::op::gangs
