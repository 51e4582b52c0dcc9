// SPDX-License-Identifier: Apache-2.0
#include "operator/collector/report_writer.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "operator/cluster/fair_share.h"

namespace railhead::op {
namespace {

using kube::Json;

constexpr char kManager[] = "railhead-operator";
constexpr char kResource[] = "railreports";
// Queue item that reads all existing reports; keys of jobs contain slashes.
constexpr char kLoad[] = "load";
// Queue item that clears the reports of jobs without pods.
constexpr char kSweep[] = "sweep";
constexpr absl::Duration kUntilKnown = absl::Seconds(2);
// Maximum numbers of reports with a finding.
constexpr FairShare kReports = {.most = 2000, .most_of_one = 500, .reserve = 500, .small = 20};
// Reload interval at the limit: some reports may belong to jobs that are gone since.
constexpr absl::Duration kLoadAgain = absl::Minutes(5);
constexpr absl::Duration kReportPatience =
    absl::Seconds(60);  // a wait ends earlier where there is work
constexpr absl::Duration kBetweenWritesOfOne = absl::Seconds(10);
constexpr absl::Duration kBetweenWrites = absl::Milliseconds(100);
constexpr kube::BackoffOptions kWriteBackoff = {absl::Milliseconds(500), absl::Minutes(5)};

// Returns whether the owners mean the same job: pods of a gang may have come or gone.
bool HaveOneInCommon(const std::string& owners, const std::string& others) {
  if (owners == others) return true;
  const absl::StatusOr<Json> a = kube::ParseJson(owners);
  const absl::StatusOr<Json> b = kube::ParseJson(others);
  if (!a.ok() || !b.ok() || !a->is_array() || !b->is_array()) return false;
  std::set<std::string> uids;
  for (const Json& owner : *a) uids.insert(kube::StringAt(owner, {"uid"}));
  uids.erase("");
  return std::any_of(b->begin(), b->end(), [&](const Json& owner) {
    return uids.contains(kube::StringAt(owner, {"uid"}));
  });
}

// Returns whether the server may have carried out the request.
bool MayBeDone(const absl::Status& applied) {
  return !absl::IsNotFound(applied) && !absl::IsAborted(applied) &&
         !absl::IsAlreadyExists(applied) && !absl::IsInvalidArgument(applied) &&
         !absl::IsPermissionDenied(applied) && !absl::IsUnauthenticated(applied);
}

// Returns whether an owner is not a pod: the report may outlive the pods.
bool MayOutlivePods(const std::string& owners) {
  const absl::StatusOr<Json> list = kube::ParseJson(owners);
  return list.ok() && list->is_array() &&
         std::any_of(list->begin(), list->end(),
                     [](const Json& owner) { return kube::StringAt(owner, {"kind"}) != "Pod"; });
}

Json ObjectNamed(const std::string& space, const std::string& name) {
  return {{"apiVersion", kRailReportVersion},
          {"kind", kRailReportKind},
          {"metadata", {{"name", name}, {"namespace", space}}}};
}

}  // namespace

ReportWriter::ReportWriter(kube::Api* api, const std::set<std::string>& namespaces,
                           std::function<bool()> leads, std::function<absl::Time()> clock,
                           InUse in_use)
    : api_(api),
      spaces_(namespaces.empty() ? std::vector<std::string>{""}
                                 : std::vector<std::string>(namespaces.begin(), namespaces.end())),
      leads_(std::move(leads)),
      in_use_(std::move(in_use)),
      queue_(kWriteBackoff, kube::SystemRandom(), std::move(clock), kube::NamespaceOfItem) {}

void ReportWriter::ShutDown() { queue_.ShutDown(); }

void ReportWriter::OnLead() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    loaded_ = false;
    wanted_.clear();
    written_.clear();
    keys_.clear();
  }
  queue_.Add(kLoad);
}

void ReportWriter::Put(const std::string& job, const RailReport& report) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::string key = ReportKey(report.space, report.name);
    const auto written = written_.find(key);
    const bool stands = written != written_.end() && written->second.MayHaveFault();
    // Swept reports are their own jobs until then.
    if (written != written_.end() && (written->second.job.empty() || written->second.job == key) &&
        HaveOneInCommon(written->second.owners, kube::DumpJson(report.owners))) {
      wanted_.erase(key);
      keys_.erase(key);
      Claim(job, key);
    }
    if (report.is_clear && loaded_ && !stands) {
      wanted_.erase(job);
      return;
    }
    wanted_[job] = {report.space,
                    report.name,
                    kube::DumpJson(report.owners),
                    kube::DumpJson(report.status),
                    report.is_clear,
                    report.is_certain};
  }
  queue_.Add(job);
}

void ReportWriter::Forget(const std::string& job) {
  const bool leads = leads_();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto key = keys_.find(job);
    const auto written = key == keys_.end() ? written_.end() : written_.find(key->second);
    if (written == written_.end() || written->second.job != job ||
        !written->second.MayHaveFault() || !MayOutlivePods(written->second.owners) || !leads) {
      Drop(job);
      return;
    }
    WantEnd(job, key->second);
  }
  queue_.Add(job);
}

void ReportWriter::WantEnd(const std::string& job, const std::string& key) {
  const size_t slash = key.find('/');
  Wanted& end = wanted_[job] = {};
  end.space = key.substr(0, slash);
  end.name = key.substr(slash + 1);
  end.owners = written_[key].owners;
  end.status = kube::DumpJson(ClearStatus());
  end.is_last = true;
}

void ReportWriter::Drop(const std::string& job) {
  wanted_.erase(job);
  const auto key = keys_.find(job);
  if (key == keys_.end()) return;
  // Another job of its name may have it by now.
  if (const auto written = written_.find(key->second);
      written != written_.end() && written->second.job == job) {
    written_.erase(written);
  }
  keys_.erase(key);
}

void ReportWriter::DropEnded(const std::string& job) {
  const auto wanted = wanted_.find(job);
  if (wanted != wanted_.end() && wanted->second.is_last) Drop(job);
}

void ReportWriter::Claim(const std::string& job, const std::string& key) {
  written_[key].job = job;
  keys_[job] = key;
}

bool ReportWriter::HasRoom(const std::string& space) const {
  const std::string prefix = ReportKey(space, "");
  size_t all = 0;
  size_t own = 0;
  for (const auto& [key, written] : written_) {
    if (written.is_clear) continue;
    ++all;
    if (absl::StartsWith(key, prefix)) ++own;
  }
  return kReports.Allows(all, own, 1);
}

void ReportWriter::Run() {
  while (!queue_.is_shut_down()) {
    const std::optional<std::string> item = queue_.Take(kReportPatience);
    if (!item) continue;
    const absl::StatusOr<bool> wrote = *item == kLoad    ? Load()
                                       : *item == kSweep ? Sweep()
                                                         : Write(*item);
    Tell(wrote.status());
    if (!wrote.ok()) {
      queue_.Retry(*item);
    } else if (*wrote) {
      queue_.Rest(*item, kBetweenWritesOfOne);
      absl::SleepFor(kBetweenWrites);
    } else {
      queue_.Finish(*item);
    }
  }
}

absl::Status ReportWriter::List(const std::string& space, const std::string& selector,
                                std::map<std::string, Written>& written) {
  const absl::Status read = kube::ForEach(
      *api_, {kRailReportVersion, kResource, space, ""},
      [&written](const Json& object) {
        const Json* owners = kube::FindPath(object, {"metadata", "ownerReferences"});
        const Json* status = kube::Find(object, "status");
        Written& one = written[ReportKey(kube::StringAt(object, {"metadata", "namespace"}),
                                         kube::StringAt(object, {"metadata", "name"}))];
        if (owners != nullptr) one.owners = kube::DumpJson(*owners);
        if (status != nullptr) one.status = kube::DumpJson(*status);
        one.is_clear = kube::StringAt(object, {"status", "severity"}) == "None";
        return absl::OkStatus();
      },
      selector);
  if (read.ok()) return absl::OkStatus();
  return absl::Status(read.code(), absl::StrCat("cannot read railreports: ", read.message()));
}

absl::StatusOr<bool> ReportWriter::Load() {
  if (!leads_()) return false;
  std::map<std::string, Written> written;
  for (const std::string& space : spaces_) {
    absl::Status listed = List(space, "", written);
    // A namespace that was deleted takes with it our right to look there.
    if (listed.ok() || (!space.empty() && absl::IsPermissionDenied(listed))) continue;
    return listed;
  }
  std::vector<std::string> jobs;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::map<std::string, Written> before = std::exchange(written_, std::move(written));
    keys_.clear();
    for (auto& [key, one] : written_) {
      const auto known = before.find(key);
      if (known == before.end() || known->second.job.empty()) continue;
      if (HaveOneInCommon(known->second.owners, one.owners)) Claim(known->second.job, key);
    }
    loaded_ = true;
    for (const auto& [job, wanted] : wanted_) jobs.push_back(job);
  }
  for (const std::string& job : jobs) queue_.Add(job);
  queue_.Add(kSweep);
  return false;
}

absl::StatusOr<bool> ReportWriter::Sweep() {
  if (!leads_()) return false;
  const std::optional<std::set<std::string>> in_use = in_use_();
  if (!in_use) {
    queue_.AddAfter(kSweep, kUntilKnown);
    return false;
  }
  std::vector<std::string> over;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!loaded_) return false;  // Load comes, and then this
    for (auto& [key, written] : written_) {
      if (written.is_clear || !written.job.empty() || in_use->contains(key) ||
          !MayOutlivePods(written.owners)) {
        continue;
      }
      // Its job is not known; the key of a job has more slashes.
      Claim(key, key);
      WantEnd(key, key);
      over.push_back(key);
    }
  }
  for (const std::string& job : over) queue_.Add(job);
  return false;
}

std::optional<ReportWriter::Wanted> ReportWriter::Next(const std::string& job) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto at = wanted_.find(job);
  if (!loaded_ || at == wanted_.end()) return std::nullopt;
  Wanted next = at->second;
  const auto written = written_.find(ReportKey(next.space, next.name));
  if (next.is_last && (written == written_.end() || written->second.job != job ||
                       written->second.status == next.status)) {
    Drop(job);
    return std::nullopt;
  }
  if (written == written_.end()) {
    if (!next.is_clear && HasRoom(next.space)) return next;
    if (next.is_clear) wanted_.erase(at);
    if (!next.is_clear) queue_.AddAfter(kLoad, kLoadAgain);
    return std::nullopt;
  }
  const bool same_job = HaveOneInCommon(written->second.owners, next.owners);
  if (same_job) {
    Claim(job, written->first);
    next.owners = written->second.owners;
  }
  if (!next.is_certain && same_job) {
    const absl::StatusOr<Json> before = kube::ParseJson(written->second.status);
    if (before.ok()) {
      const Json merged = Merge(*before, *kube::ParseJson(next.status));
      next.is_clear = merged["severity"] == "None";
      next.status = kube::DumpJson(merged);
    }
  }
  if (same_job && written->second.status == next.status) return std::nullopt;
  return next;
}

absl::Status ReportWriter::ReadAgain(const std::string& job) {
  std::string space;
  std::string name;
  std::string key;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto at = wanted_.find(job);
    if (at == wanted_.end()) return absl::OkStatus();
    space = at->second.space;
    name = at->second.name;
    key = ReportKey(space, name);
    const auto written = written_.find(key);
    if (written == written_.end() || !written->second.is_unsure) return absl::OkStatus();
  }
  std::map<std::string, Written> found;
  const std::string selector = absl::StrCat("fieldSelector=metadata.name%3D", kube::Escape(name));
  if (absl::Status listed = List(space, selector, found); !listed.ok()) return listed;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto written = written_.find(key);
  if (written == written_.end()) return absl::OkStatus();  // its job is gone
  const auto now = found.find(key);
  if (now == found.end()) {
    written_.erase(written);
    return absl::OkStatus();
  }
  now->second.job = written->second.job;
  written->second = std::move(now->second);
  return absl::OkStatus();
}

absl::Status ReportWriter::Send(const Wanted& report, bool is_there) {
  const kube::ObjectRef object = {kRailReportVersion, kResource, report.space, report.name};
  if (!is_there) {
    Json made = ObjectNamed(report.space, report.name);
    made["metadata"]["ownerReferences"] = *kube::ParseJson(report.owners);
    absl::Status applied = kube::Apply(*api_, object, kManager, made).status();
    if (!applied.ok()) return applied;
  }
  kube::ObjectRef status = object;
  status.subresource = "status";
  Json said = ObjectNamed(report.space, report.name);
  said["status"] = *kube::ParseJson(report.status);
  return kube::Apply(*api_, status, kManager, said).status();
}

absl::StatusOr<bool> ReportWriter::Write(const std::string& job) {
  if (!leads_()) return false;
  if (absl::Status read = ReadAgain(job); !read.ok()) return read;
  const std::optional<Wanted> next = Next(job);
  if (!next || !leads_()) return false;
  const std::string key = ReportKey(next->space, next->name);
  std::optional<Written> before;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto known = written_.find(key); known != written_.end()) {
      before = known->second;
    } else {
      written_[key].owners = next->owners;
    }
    // Before sending: a clear report put during the request must not be dropped as redundant.
    written_[key].is_unsure = true;
    Claim(job, key);
  }
  absl::Status applied = Send(*next, before && before->owners == next->owners);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!applied.ok()) {
    if (MayBeDone(applied)) return applied;
    const bool is_known = written_.erase(key) > 0;  // else its job is gone
    if (absl::IsNotFound(applied)) {                // it was deleted
      if (next->is_last) {
        DropEnded(job);
        return false;
      }
    } else if (before && is_known) {
      written_[key] = *std::move(before);
    }
    return applied;
  }
  written_[key] = {next->owners, next->status, next->is_clear};
  Claim(job, key);
  if (!wanted_.contains(job) && loaded_) {  // its last pod went during the request
    WantEnd(job, key);
    queue_.Add(job);
  } else if (next->is_last) {
    DropEnded(job);
  }
  return true;
}

void ReportWriter::Tell(const absl::Status& status) {
  const std::string now(status.message());
  if (now != trouble_ && !status.ok()) spdlog::warn("railreports: {}", now);
  trouble_ = now;
}

}  // namespace railhead::op
