// SPDX-License-Identifier: Apache-2.0
#include "jobs/job.h"

#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "jobs/fields.h"
#include "jobs/job_set.h"
#include "jobs/kinds.h"
#include "jobs/labels.h"
#include "kube/elements.h"

namespace railhead::jobs {
namespace {

using kube::Json;

// Returns the identity of the first kind that the pod's labels name as a job above controllers.
std::optional<std::string> IdentityByLabels(const Json& pod) {
  for (const Kind* kind : kKinds) {
    if (kind->identity == nullptr) continue;
    const std::optional<Identity> found = kind->identity(pod);
    if (!found || !found->above_controllers) continue;
    return absl::StrCat(kind->name, "/", found->name, "/", found->uid.value_or(""));
  }
  return std::nullopt;
}

std::optional<Job> ReadJob(const Kind& kind, const Json& pod) {
  if (kind.identity == nullptr) return std::nullopt;
  std::optional<Identity> found = kind.identity(pod);
  if (!found) return std::nullopt;
  Job job;
  job.kind = &kind;
  job.whole = absl::StrCat(kind.name, "/", found->name);
  if (found->uid) absl::StrAppend(&job.whole, "/", *found->uid);
  job.name = std::move(found->name);
  job.part = job.whole;
  if (kind.part != nullptr && !kind.part(pod, job)) return std::nullopt;
  return job;
}

// Returns the value of the first entry of a kind's list that is not empty, and its name.
std::pair<std::string, std::string> FirstOf(absl::Span<const absl::string_view> Kind::*list,
                                            std::string (*value)(const Json& pod,
                                                                 absl::string_view name),
                                            const Json& pod) {
  for (const Kind* kind : kKinds) {
    for (const absl::string_view name : kind->*list) {
      if (std::string found = value(pod, name); !found.empty()) return {found, std::string(name)};
    }
  }
  return {};
}

}  // namespace

absl::StatusOr<std::string> IdentityOf(const Json& pod) {
  if (const std::string said = kube::AnnotationOf(pod, kJob); !said.empty()) {
    return absl::StrCat("annotation/", said);
  }
  if (std::optional<std::string> found = IdentityByLabels(pod)) return *std::move(found);
  const std::optional<Owner> controller = ControllerOf(pod);
  if (controller && !controller->uid.empty() && KindOf(*controller).pods != Kind::Pods::kNoJob) {
    return absl::StrCat("controller/", controller->uid);
  }
  if (const std::string gang = kube::LabelOf(pod, kGangLabel); !gang.empty()) {
    return absl::StrCat("gang/", gang);
  }
  const bool by_kind = controller && !controller->kind.empty();
  return absl::NotFoundError(absl::StrCat(
      by_kind ? absl::StrCat("the pods of a ", controller->kind, " are not a job")
              : "the pod has no controller",
      ": make an Indexed Job or a JobSet of the ranks, give them one value in the annotation ",
      kJob, ", or set RAILHEAD_SECRET_FILE"));
}

std::optional<Job> JobOf(const Json& pod) {
  for (const Kind* kind : kKinds) {
    if (std::optional<Job> job = ReadJob(*kind, pod)) return job;
  }
  return std::nullopt;
}

Rank RankOf(const Json& json) {
  const Pod pod = {json, OwnerOf(json), JobOf(json)};
  Rank rank;
  for (const Kind* kind : kKinds) {
    const bool of_another = kind->identity != nullptr && (!pod.job || pod.job->kind != kind);
    if (kind->rank == nullptr || of_another) continue;
    std::optional<Rank> found = kind->rank(pod);
    if (!found) continue;
    rank = *std::move(found);
    break;
  }
  if (std::optional<NoRank> wrong = WrongRankGroup(json)) rank.missing.push_back(*std::move(wrong));
  return rank;
}

const Kind& KindOf(const Owner& controller) {
  const Kind* found = &kUnknownKind;
  for (const Kind* kind : kKinds) {
    if (kind->name != controller.kind) continue;
    const bool of_any_group = kind->api_group.empty() && found == &kUnknownKind;
    if (of_any_group ||
        (!kind->api_group.empty() && absl::StartsWith(controller.api, kind->api_group))) {
      found = kind;
    }
  }
  return *found;
}

std::vector<std::string> KindNames() {
  std::set<std::string> names = {std::string(kBatchJob.name)};
  for (const Kind* kind : kKinds) {
    if (kind->identity != nullptr) names.insert(std::string(kind->name));
  }
  return {names.begin(), names.end()};
}

const Cause* CauseOf(absl::string_view word) {
  for (const Kind* kind : kKinds) {
    for (const Cause* cause : kind->causes) {
      if (cause->word == word) return cause;
    }
  }
  return nullptr;
}

std::string PartOfSeveralTemplates(const Job& job) {
  if (job.kind->one_template || !job.size) return "";
  return absl::StrCat(job.part, "@", job.attempt);
}

std::string ExclusiveTopologyOf(const Json& pod) {
  return FirstOf(&Kind::exclusive_topology, kube::AnnotationOf, pod).second;
}

std::string GroupOf(const Json& pod) {
  return FirstOf(&Kind::group_labels, kube::LabelOf, pod).first;
}

bool IsInSchedulingGroup(const Json& pod) {
  const Json* group = kube::FindPath(pod, {"spec", "schedulingGroup"});
  return group != nullptr && group->is_object();
}

}  // namespace railhead::jobs
