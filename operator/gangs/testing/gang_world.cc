// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/testing/gang_world.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "operator/gangs/stored_node.h"
#include "operator/gangs/testing/small_cluster.h"
#include "operator/objects/names.h"

namespace railhead::op::gangs::testing {

using Outcome = Result::Outcome;
using Kind = Action::Kind;

namespace {

constexpr int kHcas = 8;  // of a node
constexpr absl::Duration kOfStep = absl::Seconds(5);
constexpr int kUntilFailed = 12;  // steps that ranks wait for the others

bool IsAlive(const StoredPod& pod) { return !pod.leaving && !pod.succeeded; }

}  // namespace

GangWorld::GangWorld(uint32_t seed) : random_(seed) {
  const int leaves = Draw(1, 3);
  for (int leaf = 0; leaf < leaves; ++leaf) {
    const int count = Draw(2, 4);
    for (int i = 0; i < count; ++i) {
      const std::string name = absl::StrCat("n", leaf, i);
      all_nodes_.push_back(std::make_shared<const StoredNode>(
          *ReadStoredNode(NodeObject(name, absl::StrCat("s", leaf / 2), absl::StrCat("l", leaf)))));
    }
  }
  BuildRoom();
  machine_ = std::make_unique<GangMachine>(GangMachine::Options());
}

void GangWorld::BuildRoom() {
  std::vector<NodeValue> nodes;
  for (const NodeValue& node : all_nodes_) {
    if (gone_.contains(node->hostname)) continue;
    auto now = std::make_shared<StoredNode>(*node);
    now->cordoned = cordoned_.contains(node->hostname);
    nodes.push_back(std::move(now));
  }
  room_.reset();
  tree_ = BuildTree(nodes);
  room_ = std::make_unique<ClusterRoom>(&tree_);
}

void GangWorld::Step() {
  ++step_;
  now_ += kOfStep;
  if (!calm_) SomethingHappens();
  GoOn();
  Bind();
  // Watches that are late show what was.
  if (seen_.empty() || calm_ || Draw(0, 3) != 0) {
    seen_.clear();
    for (const auto& [name, pod] : pods_) seen_.push_back(std::make_shared<const StoredPod>(pod));
  }
  Lead();
  Look();
}

void GangWorld::CalmDown() {
  calm_ = true;
  gone_.clear();
  cordoned_.clear();
  denied_.clear();
  away_until_ = 0;
  for (auto& [name, end] : outsiders_) end = step_;
  BuildRoom();
}

void GangWorld::Arrive() {
  static constexpr const char* kKinds[] = {"Job", "Job", "Job", "ReplicaSet", "PyTorchJob", ""};
  const std::string name = absl::StrCat("g", ++serial_);
  Job& job = jobs_[name];
  job.kind = kKinds[Draw(0, 5)];
  job.hcas = 4 << Draw(0, 1);
  const int at_most = static_cast<int>(all_nodes_.size()) * kHcas / job.hcas;
  job.size = Draw(1, std::min(6, at_most));
  job.priority = Draw(0, 1);
  job.evictable = job.kind == "Job" && Draw(0, 1) == 0;
  job.failures_left = Draw(0, 3);
  for (int i = 0; i < job.size; ++i) job.made_at[i] = step_ + (Draw(0, 3) == 0 ? Draw(1, 4) : 0);
}

void GangWorld::MakePod(const std::string& name, Job& job, int index) {
  StoredPod pod;
  pod.space = "train";
  pod.name = absl::StrCat(name, "-", index, "-", ++serial_);
  pod.uid = absl::StrCat("u", serial_);
  pod.requests = Resources{{"pods", 1000}, {"rdma/hca", job.hcas * 1000}};
  GangTerms terms;
  terms.gang = job.kind.empty() ? name : "true";
  terms.size = job.size;
  if (!job.kind.empty()) terms.owner = {"v1", job.kind, name, name};
  terms.kind = &jobs::KindOf({"", job.kind, "", ""});
  terms.evictable = job.evictable;
  terms.priority = job.priority;
  Membership member;
  member.terms = std::move(terms);
  member.index = index;
  member.created = now_;
  member.gate = 0;
  // It came while the webhook was away, and goes where there is room.
  if (!calm_ && Draw(0, 19) == 0) member.gate.reset();
  pod.member = std::move(member);
  job.pods[index] = pod.name;
  pods_[pod.name] = std::move(pod);
}

std::string GangWorld::NodeOf(const StoredPod& pod) const {
  if (!pod.node.empty() || !pod.member) return pod.node;
  const auto selector = pod.member->rules->selector.find(kHostname);
  return selector == pod.member->rules->selector.end() ? "" : selector->second;
}

int GangWorld::UsedOn(const std::string& node, bool sent) const {
  int64_t used = 0;
  for (const auto& [name, pod] : pods_) {
    if (!pod.requests->contains("rdma/hca")) continue;
    // By us alone where pods on their way are looked at, too.
    if (sent ? pod.member && pod.member->released && NodeOf(pod) == node : pod.node == node) {
      used += pod.requests->at("rdma/hca") / 1000;
    }
  }
  return static_cast<int>(used);
}

// `counts`: it has failed, or its end is taken for a failure.
void GangWorld::PodIsGone(const std::string& name, bool counts, bool by_us) {
  const StoredPod pod = pods_.at(name);
  const std::string owner = name.substr(0, name.find('-'));
  const auto found = jobs_.find(owner);
  if (found == jobs_.end()) {
    pods_.erase(name);
    return;
  }
  Job& job = found->second;
  job.pods.erase(*pod.member->index);
  job.made_at[*pod.member->index] = step_ + Draw(1, 4);
  if (job.kind == "Job" && counts && --job.failures_left < 0) {
    if (by_us) Wrong(absl::StrCat("Job ", owner, " has failed as pod ", name, " was evicted"));
    for (auto other = pods_.begin(); other != pods_.end();) {
      other = other->first.starts_with(owner + "-") ? pods_.erase(other) : std::next(other);
    }
    jobs_.erase(owner);
  }
}

void GangWorld::SomethingHappens() {
  const auto any = [&](auto& things) {
    auto thing = things.begin();
    std::advance(thing, Draw(0, static_cast<int>(things.size()) - 1));
    return thing;
  };
  const std::string node = (*any(all_nodes_))->hostname;
  switch (Draw(0, 11)) {
    case 0:
    case 1:
    case 2:
      if (jobs_.size() < 5) Arrive();
      break;
    case 3: {  // a pod crashes
      if (pods_.empty()) break;
      auto pod = any(pods_);
      if (!pod->second.member || pod->second.node.empty() || !IsAlive(pod->second)) break;
      pod->second.failed = pod->second.leaving = true;
      pod->second.requests = {};
      PodIsGone(pod->first, true, false);
      break;
    }
    case 4: {  // somebody deletes a pod
      if (pods_.empty()) break;
      auto pod = any(pods_);
      if (!pod->second.member || !IsAlive(pod->second)) break;
      const std::string name = pod->first;
      PodIsGone(name, true, false);
      pods_.erase(name);
      break;
    }
    case 5:
      if (!cordoned_.erase(node)) cordoned_.insert(node);
      BuildRoom();
      break;
    case 6: {  // a node goes, and its pods with it; or comes back
      if (gone_.erase(node) == 0) {
        gone_.insert(node);
        std::vector<std::string> there;
        for (const auto& [name, pod] : pods_) {
          if (pod.node == node && IsAlive(pod)) there.push_back(name);
        }
        for (const std::string& name : there) {
          if (!pods_.contains(name)) continue;
          if (pods_.at(name).member) PodIsGone(name, true, false);
          pods_.erase(name);
        }
      }
      BuildRoom();
      break;
    }
    case 7: {  // another scheduler takes what it finds
      const int hcas = Draw(1, kHcas);
      if (gone_.contains(node) || UsedOn(node, false) + hcas > kHcas) break;
      StoredPod pod;
      pod.space = "other";
      pod.name = absl::StrCat("other-", ++serial_);
      pod.uid = absl::StrCat("u", serial_);
      pod.node = node;
      pod.requests = Resources{{"pods", 1000}, {"rdma/hca", hcas * 1000}};
      outsiders_[pod.name] = step_ + Draw(5, 40);
      pods_[pod.name] = std::move(pod);
      break;
    }
    case 8:  // a webhook for some breaks, or is mended
      if (!denied_.empty() && Draw(0, 1) == 0) {
        denied_.clear();
      } else if (!jobs_.empty()) {
        denied_.insert(any(jobs_)->first);
      }
      break;
    case 9:
      away_until_ = step_ + Draw(1, 4);
      break;
    case 10:  // another leader, which has listed all
      machine_ = std::make_unique<GangMachine>(GangMachine::Options());
      seen_.clear();
      ++tally_.restarts;
      break;
    default:
      break;
  }
}

void GangWorld::GoOn() {
  for (auto outsider = outsiders_.begin(); outsider != outsiders_.end();) {
    if (outsider->second > step_) {
      ++outsider;
      continue;
    }
    pods_.erase(outsider->first);
    outsider = outsiders_.erase(outsider);
  }
  std::vector<std::string> names;
  for (const auto& [name, job] : jobs_) names.push_back(name);
  for (const std::string& name : names) {
    Job& job = jobs_.at(name);
    for (auto missing = job.made_at.begin(); missing != job.made_at.end();) {
      if (missing->second > step_) {
        ++missing;
        continue;
      }
      MakePod(name, job, missing->first);
      missing = job.made_at.erase(missing);
    }
    int bound = 0;
    for (const auto& [index, pod] : job.pods) bound += pods_.at(pod).node.empty() ? 0 : 1;
    if (bound < job.size) {
      // Ranks that have met nobody for long give up.
      job.whole_for = bound == 0 ? 0 : std::min(0, job.whole_for) - 1;
      if (job.whole_for > -kUntilFailed) continue;
      job.whole_for = 0;
      const std::map<int, std::string> pods = job.pods;
      for (const auto& [index, pod] : pods) {
        if (pods_.at(pod).node.empty()) continue;
        // Whether the Job lives on is its user's business here.
        job.failures_left = std::max(1, job.failures_left);
        PodIsGone(pod, true, false);
        pods_.erase(pod);
      }
      continue;
    }
    if (job.whole_for < 0) job.whole_for = 0;
    if (job.whole_for++ == 0) ++tally_.whole;
    if (job.whole_for < (calm_ ? 3 : 30)) continue;
    for (auto pod = pods_.begin(); pod != pods_.end();) {
      pod = pod->first.starts_with(name + "-") ? pods_.erase(pod) : std::next(pod);
    }
    jobs_.erase(name);
    ++tally_.ended;
  }
}

void GangWorld::Bind() {
  for (auto& [name, pod] : pods_) {
    if (!pod.member || pod.member->gate || !pod.node.empty() || !IsAlive(pod)) continue;
    Membership& member = *pod.member;
    const int hcas = static_cast<int>(pod.requests->at("rdma/hca") / 1000);
    const auto takes = [&](const std::string& node) {
      return !gone_.contains(node) && !cordoned_.contains(node) &&
             UsedOn(node, false) + hcas <= kHcas;
    };
    std::string node = NodeOf(pod);
    if (node.empty()) {  // of our doing or not, it is free to go anywhere
      for (const NodeValue& any : all_nodes_) {
        if (takes(any->hostname)) node = any->hostname;
      }
    }
    if (!node.empty() && takes(node)) {
      pod.node = node;
      member.rules = {};
      member.unschedulable = false;
    } else {
      member.unschedulable = true;
      member.unschedulable_why = std::string("0/9 nodes are available: 1 Insufficient rdma/hca.");
      member.resource_version = std::string("1");
    }
  }
}

void GangWorld::Lead() {
  const GangMachine::Step step = machine_->Next(seen_, *room_, now_);
  bool stop = false;
  for (const Work& work : step.works) {
    std::vector<Result> results(work.actions.size());
    for (size_t i = 0; i < work.actions.size() && !stop; ++i) {
      results[i] = Do(work, work.actions[i]);
      stop = results[i].outcome == Outcome::kUnknown;
      // A leader that ends in the middle of what it does.
      if (!calm_ && Draw(0, 199) == 0) {
        machine_ = std::make_unique<GangMachine>(GangMachine::Options());
        seen_.clear();
        ++tally_.restarts;
        return;
      }
      if (results[i].outcome != Outcome::kDone) break;
    }
    machine_->Happened(work, results, now_);
  }
}

Result GangWorld::Do(const Work& work, const Action& action) {
  const StoredPod& pod = *action.assignment.pod;
  const std::string owner = pod.name.substr(0, pod.name.find('-'));
  if (step_ < away_until_) {
    ++tally_.lost_answers;
    if (action.kind != Kind::kLook && Draw(0, 1) == 0) Apply(action);
    return {Outcome::kUnknown, "no answer"};
  }
  if (action.kind == Kind::kLook) {
    const auto now = pods_.find(pod.name);
    const bool gone = now == pods_.end() || now->second.member->gate.has_value();
    return {gone ? Outcome::kNotDone : Outcome::kDone, "it waits"};
  }
  if (denied_.contains(owner)) {
    ++tally_.refused;
    return {Outcome::kNotDone, "denied"};
  }
  if (!calm_ && Draw(0, 29) == 0) return {Outcome::kNotDone, "HTTP 500"};
  // Where there is none released yet all of it must be there.
  if (action.kind == Kind::kRelease) {
    int there = 0;
    bool begun = false;
    for (const PodValue& other : seen_) {
      if (!other->member || GangKeyOf(*other) != work.gang) continue;
      there += other->leaving ? 0 : 1;
    }
    for (const auto& [name, other] : pods_) {
      begun = begun || (other.member && IsAlive(other) && other.member->released &&
                        GangKeyOf(other) == work.gang);
    }
    // What went since the watches have seen it cannot be known.
    if (!begun && there < pod.member->terms->size && seen_.size() == pods_.size()) {
      Wrong(absl::StrCat(pod.name, " is let go with ", there, " of ", pod.member->terms->size));
    }
  }
  return {Apply(action) ? Outcome::kDone : Outcome::kNotDone, "changed"};
}

bool GangWorld::Apply(const Action& action) {
  const auto found = pods_.find(action.assignment.pod->name);
  if (found == pods_.end() || found->second.uid != action.assignment.pod->uid) return false;
  StoredPod& pod = found->second;
  Membership& member = *pod.member;
  switch (action.kind) {
    case Kind::kRelease:
      if (!member.gate) return false;
      if (gone_.contains(action.assignment.hostname) ||
          cordoned_.contains(action.assignment.hostname)) {
        Wrong(absl::StrCat(pod.name, " is sent to ", action.assignment.hostname,
                           ", which takes no pods"));
      }
      member.gate.reset();
      member.released = true;
      member.rank = action.assignment.rank;
      member.rules.Change(
          [&action](NodeRules& rules) { rules.selector[kHostname] = action.assignment.hostname; });
      ++tally_.released;
      return true;
    case Kind::kUngate:
      member.gate.reset();
      return true;
    case Kind::kEvict:
      if (!pod.node.empty()) return false;
      ++tally_.evicted;
      {
        const std::string name = found->first;
        PodIsGone(name, !action.assignment.pod->member->terms->evictable, true);
        pods_.erase(name);
      }
      return true;
    case Kind::kFail:
    case Kind::kLook:
    case Kind::kTellRank:
      return true;
  }
  return false;
}

void GangWorld::Look() {
  for (const NodeValue& node : all_nodes_) {
    if (UsedOn(node->hostname, true) > kHcas) {
      Wrong(absl::StrCat("node ", node->hostname, " is given twice"));
    }
  }
}

std::string GangWorld::Describe() const {
  std::string text = absl::StrCat("step ", step_, "\n");
  for (const auto& [name, pod] : pods_) {
    absl::StrAppend(&text, name, " ", pod.failed ? "failed " : "", "on ", NodeOf(pod),
                    pod.node.empty() ? " (not bound)" : "",
                    pod.member && pod.member->gate ? " gated" : "", "\n");
  }
  for (const auto& [name, job] : jobs_) {
    absl::StrAppend(&text, name, " ", job.kind, " size ", job.size, " hcas ", job.hcas, "\n");
  }
  return text;
}

}  // namespace railhead::op::gangs::testing
