// SPDX-License-Identifier: Apache-2.0
//
// Checks jobs: lists the operator's reports, and applies its rules to pods that have no report yet,
// or none because the operator does not run.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "cli/doctor/checks.h"
#include "cli/output/command.h"
#include "cli/output/words.h"
#include "operator/gangs/gang.h"
#include "operator/verdict/cluster.h"
#include "operator/verdict/judge.h"

namespace railhead::cli::doctor {
namespace {

namespace verdict = op::verdict;

// Returns "job team/train" for the owner "job/train".
std::string JobOf(const Report& report) {
  const size_t slash = report.owner.find('/');
  if (slash == std::string::npos) {
    return absl::StrCat("railreport ", report.space, "/", report.name);
  }
  // Pods of a gang without an owner share one report, named after the gang.
  absl::string_view name = report.name;
  if (absl::ConsumePrefix(&name, "podgroup-")) {
    return absl::StrCat("podgroup ", report.space, "/", name);
  }
  return absl::StrCat(report.owner.substr(0, slash), " ", report.space, "/",
                      report.owner.substr(slash + 1));
}

std::string JobOf(const verdict::PodFacts& pod) {
  std::string kind = pod.terms->owner.has_value() ? pod.terms->owner->kind : "Pod";
  std::transform(kind.begin(), kind.end(), kind.begin(),
                 [](unsigned char letter) { return std::tolower(letter); });
  return absl::StrCat(kind, " ", pod.space, "/",
                      pod.terms->owner.has_value() ? pod.terms->owner->name : pod.name);
}

void RepeatReport(const Report& report, Notes& notes) {
  for (const Report::Reason& reason : report.reasons) {
    const auto named = static_cast<int64_t>(reason.examples.size());
    notes.Add(
        reason.warning ? Severity::kFail : Severity::kWarn, JobOf(report),
        absl::StrCat(reason.reason, ": ", reason.pods, " of ", Counted(report.pods, "pod"), ", ",
                     absl::StrJoin(reason.examples, ", "), reason.pods > named ? ", ..." : ""),
        reason.fix.empty()
            ? Command("kubectl -n $0 describe railreport $1", {report.space, report.name})
            : reason.fix);
  }
}

// Returns what the operator has reported: UID of job or pod, and reason.
std::set<std::pair<std::string, std::string>> ReportedBy(const std::vector<Report>& reports) {
  std::set<std::pair<std::string, std::string>> reported;
  for (const Report& report : reports) {
    for (const Report::Reason& reason : report.reasons) {
      for (const std::string& uid : report.owner_uids) reported.emplace(uid, reason.reason);
    }
  }
  return reported;
}

verdict::Cluster ClusterOf(const Evidence& evidence) {
  verdict::Cluster::Nodes nodes;
  for (const auto* some : {&evidence.nodes, &evidence.others}) {
    for (const auto& [name, node] : *some) nodes[name] = node.facts;
  }
  std::map<std::string, verdict::ProfileFacts> profiles;
  for (const op::StoredProfile& stored : evidence.profiles) {
    if (!stored.profile.has_value()) continue;
    profiles[stored.name] = {stored.generation, stored.profile->fabric,
                             stored.profile->require_rdma};
  }
  verdict::ClusterSettings settings;
  // Only the operator's configuration lists the excluded namespaces; the operator reports these
  // pods itself.
  settings.tells_missed = false;
  settings.memlock_raised =
      std::any_of(evidence.workloads.begin(), evidence.workloads.end(),
                  [](const Workload& workload) { return workload.component == "memlock"; });
  return {std::move(nodes), std::move(profiles), settings};
}

// Applies the operator's rules to spec and node; the pods' runtimes are not queried.
void JudgePods(const Evidence& evidence, Notes& notes) {
  const verdict::Cluster cluster = ClusterOf(evidence);
  const auto reported = ReportedBy(evidence.reports);
  struct Seen {
    verdict::PodFinding first;
    int64_t pods = 0;
  };
  std::map<std::pair<std::string, verdict::Reason>, Seen> seen;  // by job and reason
  for (const RdmaPod& pod : evidence.pods) {
    verdict::JobFacts job;
    job.comparable = false;
    verdict::JudgedPod judged;
    judged.pod = pod.facts;
    judged.from_start = false;
    judged.waiting = std::max(evidence.now - pod.waits_since, absl::ZeroDuration());
    job.pods.push_back(std::move(judged));
    for (verdict::PodFinding& finding : verdict::Judge(job, cluster)) {
      if (reported.contains({pod.facts->uid, finding.check}) ||
          (pod.facts->terms->owner.has_value() &&
           reported.contains({pod.facts->terms->owner->uid, finding.check}))) {
        continue;
      }
      Seen& of_job = seen[{JobOf(*pod.facts), finding.reason}];
      if (of_job.pods++ == 0) of_job.first = std::move(finding);
    }
  }
  for (const auto& [key, of_job] : seen) {
    const verdict::PodFinding& first = of_job.first;
    notes.Add(
        first.severity, key.first,
        absl::StrCat(
            first.check, ": ", first.object, ": ", first.observed,
            of_job.pods > 1 ? absl::StrCat(" (and ", of_job.pods - 1, " more of its pods)") : ""),
        first.fix);
  }
}

// Returns the operator's last event about a gang, recorded for its owner or a pod.
const Told* LastOf(const op::gangs::Gang& gang, const std::vector<Told>& events) {
  const auto about = [&](const Told& told) {
    if (told.space != gang.space || !absl::StartsWith(told.reason, "Gang")) return false;
    if (told.name == gang.owner.name && !gang.owner.name.empty()) return true;
    return std::any_of(gang.gated.begin(), gang.gated.end(),
                       [&](const auto& pod) { return pod->name == told.name; });
  };
  const Told* last = nullptr;
  for (const Told& told : events) {
    if (about(told) && (last == nullptr || last->at <= told.at)) last = &told;
  }
  return last;
}

}  // namespace

void CheckGangs(const Evidence& evidence, Notes& notes) {
  if (!IsRead("pods", evidence)) return;
  int64_t running = 0;
  for (const op::gangs::Gang& gang : op::gangs::GangsOf(evidence.gang_pods, {}, {})) {
    if (gang.gated.empty()) {
      ++running;
      continue;
    }
    const std::string object = absl::StrCat("gang ", gang.space, "/", gang.name);
    const std::string why = Command("railhead why $0 -n $1", {gang.name, gang.space});
    const Told* told = LastOf(gang, evidence.events);
    const std::string waits = absl::StrCat(Counted(static_cast<int64_t>(gang.gated.size()), "pod"),
                                           " of ", gang.size, " wait: ");
    if (const std::string incomplete = op::gangs::WhyNotComplete(gang); !incomplete.empty()) {
      notes.Warn(object, absl::StrCat(waits, incomplete), why);
    } else if (told != nullptr &&
               (told->reason == "GangBlocked" || told->reason == "GangTimedOut")) {
      notes.Fail(object, absl::StrCat(waits, told->message), why);
    } else {
      notes.Warn(object,
                 absl::StrCat(
                     waits, told != nullptr ? told->message : "the operator has reported no cause"),
                 absl::StrCat("see what would help: ", why));
    }
  }
  notes.Conclude(running == 0 ? std::string("none")
                              : absl::StrCat(Counted(running, "gang"), " placed"));
}

void CheckJobs(const Evidence& evidence, Notes& notes) {
  const bool reports = IsRead("railreports.railhead.io", evidence);
  const bool pods = IsRead("pods", evidence);
  if (!reports && !pods) return;
  if (reports) {
    for (const Report& report : evidence.reports) RepeatReport(report, notes);
  }
  const bool judged =
      pods && IsRead("nodes", evidence) && IsRead("railprofiles.railhead.io", evidence);
  if (judged) JudgePods(evidence, notes);
  if (!reports || !judged) return;  // CheckRights reports what could not be read
  notes.Conclude(evidence.pods.empty()
                     ? std::string("no pod requests rdma/*")
                     : absl::StrCat(Counted(static_cast<int64_t>(evidence.pods.size()), "pod"),
                                    " with rdma/*: no known problem"));
}

}  // namespace railhead::cli::doctor
