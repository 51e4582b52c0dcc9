// SPDX-License-Identifier: Apache-2.0
#include "operator/collector/rail_report.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace railhead::op {
namespace {

using kube::Json;
using verdict::PodFinding;

constexpr size_t kMostName = 200;   // of 253 that the API allows
constexpr size_t kMostOwners = 16;  // pods of a gang
constexpr size_t kMostExamples = 3;
constexpr size_t kMostReasons = 48;   // the table has fewer
constexpr size_t kMostSummary = 256;  // it is one line of a terminal

// Returns equal values in all processes.
uint64_t Fingerprint(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
  for (const char letter : text) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3U;
  }
  return hash;
}

bool IsNameLetter(char letter) {
  return absl::ascii_islower(static_cast<unsigned char>(letter)) ||
         absl::ascii_isdigit(static_cast<unsigned char>(letter));
}

// Returns whether an object can have this name: a DNS subdomain.
bool IsObjectName(absl::string_view name) {
  for (const absl::string_view label : absl::StrSplit(name, '.')) {
    const bool ends = !label.empty() && IsNameLetter(label.front()) && IsNameLetter(label.back());
    const bool fits = ends && std::all_of(label.begin(), label.end(), [](char letter) {
                        return IsNameLetter(letter) || letter == '-';
                      });
    if (!fits) return false;
  }
  return true;
}

// The label of a gang or of a pod group need not be a name of an object.
std::string ReportName(const JobName& job) {
  std::string wanted = absl::StrCat(absl::AsciiStrToLower(job.kind), "-", job.name);
  if (wanted.size() <= kMostName && IsObjectName(wanted)) return wanted;
  std::string name = absl::AsciiStrToLower(wanted.substr(0, kMostName));
  for (char& letter : name) {
    if (!IsNameLetter(letter)) letter = '-';
  }
  return absl::StrCat(name, "-", absl::Hex(Fingerprint(wanted)));
}

Json Reference(const std::string& api, const std::string& kind, const std::string& name,
               const std::string& uid) {
  return {{"apiVersion", api}, {"kind", kind}, {"name", name}, {"uid", uid}};
}

// Returns the owners. The kind of object that a gang's label names is unknown: its pods own the
// report. If a job consists of several Jobs, these own it.
Json OwnersOf(const JobName& job, const verdict::JobFacts& facts) {
  Json owners = Json::array();
  if (!job.api.empty() && !job.uid.empty()) {
    owners.push_back(Reference(job.api, job.kind, job.name, job.uid));
    return owners;
  }
  std::set<std::string> uids;
  for (const verdict::JudgedPod& judged : facts.pods) {
    if (owners.size() == kMostOwners) break;
    const std::optional<jobs::Owner>& owner = judged.pod->terms->owner;
    const bool of_owners = job.kind != kGangKind && owner.has_value();
    if (!uids.insert(of_owners ? owner->uid : judged.pod->uid).second) continue;
    owners.push_back(of_owners ? Reference(owner->api, owner->kind, owner->name, owner->uid)
                               : Reference("v1", "Pod", judged.pod->name, judged.pod->uid));
  }
  return owners;
}

// A pod not scraped since its start may have reported to another replica.
bool IsKnown(const verdict::JudgedPod& judged) {
  return judged.pod->finished || judged.pod->running_since == absl::InfiniteFuture() ||
         judged.pod->metrics_port == 0 || judged.heard || judged.from_start;
}

// Reasons that pods, nodes and profiles alone decide. Not those that a report of a runtime may
// refute, or that wait until it is known whether one may.
constexpr verdict::Reason kWithoutPages[] = {
    verdict::Reason::kResourceUnknown,
    verdict::Reason::kTooManyDevices,
    verdict::Reason::kRailsDownAtNodes,
    verdict::Reason::kDevicesInUse,
    verdict::Reason::kAdmissionMissed,
    verdict::Reason::kProfileOutdated,
    verdict::Reason::kNotDone,
    verdict::Reason::kPolicyOverridden,
    verdict::Reason::kRankOverridden,
    verdict::Reason::kGpuDirectMissing,
    verdict::Reason::kFewerDevicesThanGpus,
    verdict::Reason::kSharpNotPossible,
};

bool IsKnownWithoutPages(const std::string& name) {
  return std::any_of(
      std::begin(kWithoutPages), std::end(kWithoutPages),
      [&name](verdict::Reason reason) { return verdict::RowOf(reason).name == name; });
}

// Pods that are diagnosed alone have a report each.
JobName ReportedAs(const JobName& job, const verdict::PodFacts& pod) {
  if (job.together) return job;
  return {pod.space, "Pod", pod.name, pod.uid, "v1"};
}

struct OfReason {
  std::set<std::string> pods;
  std::string fix;
};

// "RailDown: 1 pod, MemlockTooLow: 2 pods"
std::string SummaryOf(const Json& reasons) {
  std::string summary = absl::StrJoin(reasons, ", ", [](std::string* out, const Json& reason) {
    const int64_t pods = reason["pods"].get<int64_t>();
    absl::StrAppend(out, reason["reason"].get<std::string>(), ": ", pods,
                    pods == 1 ? " pod" : " pods");
  });
  if (summary.size() <= kMostSummary) return summary;
  return summary.substr(0, kMostSummary - 3) + "...";
}

// `reasons` has warnings first.
Json StatusOf(Json reasons, size_t pods) {
  Json status;
  status["severity"] = reasons.empty() ? Json("None") : reasons.front()["severity"];
  status["summary"] = reasons.empty() ? "no known problems" : SummaryOf(reasons);
  status["pods"] = pods;
  status["reasons"] = std::move(reasons);
  return status;
}

}  // namespace

RailReport ReportOf(const JobName& job, const verdict::JobFacts& facts,
                    const std::vector<PodFinding>& findings) {
  std::map<std::pair<bool, std::string>, OfReason> by_reason;  // warnings first
  for (const PodFinding& finding : findings) {
    OfReason& of_reason = by_reason[{finding.severity == Severity::kWarn, finding.check}];
    of_reason.pods.insert(finding.pod);
    if (of_reason.fix.empty()) of_reason.fix = finding.fix;
  }
  Json reasons = Json::array();
  for (const auto& [key, of_reason] : by_reason) {
    if (reasons.size() == kMostReasons) break;
    Json examples = Json::array();
    for (const std::string& pod : of_reason.pods) {
      if (examples.size() < kMostExamples) examples.push_back(pod);
    }
    reasons.push_back({{"reason", key.second},
                       {"severity", key.first ? "Info" : "Warning"},
                       {"pods", of_reason.pods.size()},
                       {"examples", std::move(examples)},
                       {"fix", of_reason.fix}});
  }
  const JobName of = ReportedAs(job, *facts.pods.front().pod);
  RailReport report;
  report.space = of.space;
  report.name = ReportName(of);
  report.owners = OwnersOf(of, facts);
  report.is_clear = findings.empty();
  report.is_certain = std::all_of(facts.pods.begin(), facts.pods.end(), IsKnown);
  report.status = StatusOf(std::move(reasons), facts.pods.size());
  return report;
}

std::string ReportKey(const std::string& space, const std::string& name) {
  return absl::StrCat(space, "/", name);
}

std::string ReportKeyOf(const verdict::PodFacts& pod) {
  const JobName of = ReportedAs(JobOf(pod), pod);
  return ReportKey(of.space, ReportName(of));
}

Json ClearStatus() { return StatusOf(Json::array(), 0); }

Json Merge(const Json& before, const Json& now) {
  const Json* old = kube::Find(before, "reasons");
  if (old == nullptr || !old->is_array()) return now;
  Json reasons = now["reasons"];
  std::set<std::string> named;
  for (const Json& reason : reasons) named.insert(kube::StringAt(reason, {"reason"}));
  for (const Json& reason : *old) {
    // Others may have written to it.
    const std::string name = kube::StringAt(reason, {"reason"});
    const std::string severity = kube::StringAt(reason, {"severity"});
    const Json* pods = kube::Find(reason, "pods");
    if (name.empty() || named.contains(name) || IsKnownWithoutPages(name) ||
        (severity != "Warning" && severity != "Info") || pods == nullptr ||
        !pods->is_number_integer() || reasons.size() == kMostReasons) {
      continue;
    }
    reasons.push_back(reason);
  }
  std::stable_sort(reasons.begin(), reasons.end(), [](const Json& a, const Json& b) {
    const auto key = [](const Json& reason) {
      return std::make_pair(kube::StringAt(reason, {"severity"}) != "Warning",
                            kube::StringAt(reason, {"reason"}));
    };
    return key(a) < key(b);
  });
  return StatusOf(std::move(reasons), now["pods"].get<size_t>());
}

}  // namespace railhead::op
