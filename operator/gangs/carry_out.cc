// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/carry_out.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kube/elements.h"
#include "operator/gangs/release_patch.h"
#include "operator/objects/names.h"

namespace railhead::op::gangs {
namespace {

using kube::Json;
using Kind = Action::Kind;
using Outcome = Result::Outcome;

constexpr size_t kAtOnce = 8;  // calls of the API
// Less than any call may take (rest_client.h): when its end is not known here, it is known there.
constexpr absl::Duration kWithin = absl::Seconds(4);

// The server has decided: nothing was done.
bool IsRefusal(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsAborted(status) || absl::IsInvalidArgument(status) ||
         absl::IsAlreadyExists(status) || absl::IsPermissionDenied(status) ||
         absl::IsUnauthenticated(status);
}

absl::Status Call(kube::Api& api, const Action& action) {
  const Assignment& there = action.assignment;
  const StoredPod& pod = *there.pod;
  const kube::ObjectRef ref = {"v1", "pods", pod.space, pod.name};
  const auto patch = [&](const kube::ObjectRef& object, const Json& changes) {
    return kube::Patch(api, object, kube::PatchType::kJson, changes, kWithin).status();
  };
  switch (action.kind) {
    case Kind::kRelease:
      return patch(ref, ReleasePatch(there, action.placement));
    case Kind::kUngate:
      return patch(ref, UngatePatch(there));
    case Kind::kTellRank:
      return patch(ref, RankPatch(there));
    case Kind::kFail:
      return patch({"v1", "pods", pod.space, pod.name, "status"}, FailurePatch(pod, action.why));
    case Kind::kEvict:
      return kube::Evict(api, ref, pod.uid, *pod.member->resource_version);
    case Kind::kLook:
      break;
  }
  return absl::UnavailableError("result not known yet");
}

// Returns whether the pod is in the state that the action requests.
bool IsDone(const Action& action, const Json& pod) {
  const std::string uid = kube::StringAt(pod, {"metadata", "uid"});
  const bool same = uid == action.assignment.pod->uid;
  if (action.kind == Kind::kEvict) {
    const Json* deletion = kube::FindPath(pod, {"metadata", "deletionTimestamp"});
    return !same || (deletion != nullptr && !deletion->is_null());
  }
  if (action.kind == Kind::kTellRank) {
    return same && kube::StringAt(pod, {"metadata", "annotations", kRank}) ==
                       std::to_string(*action.assignment.rank);
  }
  if (action.kind == Kind::kFail) {
    return same && kube::StringAt(pod, {"status", "phase"}) == "Failed";
  }
  const auto& gates = kube::ElementsAt(pod, {"spec", "schedulingGates"});
  return same && std::none_of(gates.begin(), gates.end(), [](const Json& gate) {
           return kube::StringAt(gate, {"name"}) == kGate;
         });
}

// After a server error the result is unknown, and a webhook's error looks like the server's own:
// the pod's state decides.
Result Do(kube::Api& api, const Action& action) {
  const absl::Status done = Call(api, action);
  if (done.ok()) return {Outcome::kDone, ""};
  std::string words(done.message());
  if (IsRefusal(done)) return {Outcome::kNotDone, std::move(words)};
  const StoredPod& pod = *action.assignment.pod;
  const absl::StatusOr<Json> now = kube::Get(api, {"v1", "pods", pod.space, pod.name});
  if (absl::IsNotFound(now.status())) {
    return {action.kind == Kind::kEvict ? Outcome::kDone : Outcome::kNotDone, std::move(words)};
  }
  if (!now.ok()) return {Outcome::kUnknown, std::move(words)};
  return {IsDone(action, *now) ? Outcome::kDone : Outcome::kNotDone, std::move(words)};
}

// Calls `work` for all indices from `from` to `to`, some at once.
void SideBySide(size_t from, size_t to, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next{from};
  std::vector<std::jthread> workers;
  for (size_t i = 0; i < std::min(kAtOnce, to - from); ++i) {
    workers.emplace_back([&] {
      for (size_t index = next++; index < to; index = next++) work(index);
    });
  }
}

class Carrier {
 public:
  Carrier(kube::Api& api, const std::vector<Work>& works, const std::function<bool()>& leads)
      : api_(api), works_(works), leads_(leads) {
    results_.reserve(works.size());
    for (const Work& work : works) results_.emplace_back(work.actions.size());
  }

  std::vector<std::vector<Result>> Run() {
    const size_t again = static_cast<size_t>(
        std::find_if(works_.begin(), works_.end(), [](const Work& work) { return work.again; }) -
        works_.begin());
    for (size_t i = 0; i < again; ++i) {
      One(i, 0);
      Others(i);
    }
    if (again < works_.size()) SideBySide(again, works_.size(), [this](size_t i) { One(i, 0); });
    for (size_t i = again; i < works_.size(); ++i) Others(i);
    return std::move(results_);
  }

 private:
  void One(size_t work, size_t action) {
    if (away_ || !leads_()) return;
    Result& result = results_[work][action];
    result = Do(api_, works_[work].actions[action]);
    if (result.outcome == Outcome::kUnknown) away_ = true;
  }

  // Carries out the remaining actions until one fails.
  void Others(size_t work) {
    std::vector<Result>& results = results_[work];
    const auto settled = [&](const Result& result) {
      return result.outcome == Outcome::kDone || works_[work].actions.front().kind == Kind::kLook;
    };
    if (!settled(results.front()) || results.size() < 2) return;
    std::atomic<bool> refused{false};
    SideBySide(1, results.size(), [&](size_t action) {
      if (refused) return;
      One(work, action);
      if (!settled(results[action])) refused = true;
    });
  }

  kube::Api& api_;
  const std::vector<Work>& works_;
  const std::function<bool()>& leads_;
  std::vector<std::vector<Result>> results_;
  std::atomic<bool> away_{false};
};

}  // namespace

std::vector<std::vector<Result>> CarryOut(kube::Api& api, const std::vector<Work>& works,
                                          const std::function<bool()>& leads) {
  return Carrier(api, works, leads).Run();
}

}  // namespace railhead::op::gangs
