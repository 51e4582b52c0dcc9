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
#include "operator/collector/fair_share.h"

namespace railhead::op {
namespace {

using kube::Json;

constexpr char kManager[] = "railhead-operator";
constexpr char kResource[] = "railreports";
// In the queue, where jobs have slashes: what stands there is to be read.
constexpr char kLoad[] = "load";
// That say that something is wrong.
constexpr FairShare kReports = {.most = 2000, .most_of_one = 500, .reserve = 500, .small = 20};
// Where there are as many, some of them may belong to jobs that are gone since.
constexpr absl::Duration kLoadAgain = absl::Minutes(5);
constexpr absl::Duration kReportPatience =
    absl::Seconds(60);  // a wait ends earlier where there is work
constexpr absl::Duration kBetweenWritesOfOne = absl::Seconds(10);
constexpr absl::Duration kBetweenWrites = absl::Milliseconds(100);
constexpr kube::BackoffOptions kWriteBackoff = {absl::Milliseconds(500), absl::Minutes(5)};

std::string KeyOf(const std::string& space, const std::string& name) {
  return absl::StrCat(space, "/", name);
}

// Whether the same job is meant: some of the pods of a gang may have gone, or come.
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

Json ObjectNamed(const std::string& space, const std::string& name) {
  return {{"apiVersion", kRailReportVersion},
          {"kind", kRailReportKind},
          {"metadata", {{"name", name}, {"namespace", space}}}};
}

}  // namespace

ReportWriter::ReportWriter(kube::Api* api, const std::set<std::string>& namespaces,
                           std::function<bool()> leads, std::function<absl::Time()> clock)
    : api_(api),
      spaces_(namespaces.empty() ? std::vector<std::string>{""}
                                 : std::vector<std::string>(namespaces.begin(), namespaces.end())),
      leads_(std::move(leads)),
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
    const std::string key = KeyOf(report.space, report.name);
    const auto written = written_.find(key);
    const bool stands = written != written_.end() && !written->second.is_clear;
    if (written != written_.end() && written->second.job.empty() &&
        HaveOneInCommon(written->second.owners, kube::DumpJson(report.owners))) {
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
  const std::lock_guard<std::mutex> lock(mutex_);
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

void ReportWriter::Claim(const std::string& job, const std::string& key) {
  written_[key].job = job;
  keys_[job] = key;
}

bool ReportWriter::HasRoom(const std::string& space) const {
  const std::string prefix = KeyOf(space, "");
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
    const absl::StatusOr<bool> wrote = *item == kLoad ? Load() : Write(*item);
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

absl::Status ReportWriter::List(const std::string& space, std::map<std::string, Written>& written) {
  const absl::Status read = kube::ForEach(
      *api_, {kRailReportVersion, kResource, space, ""}, [&written](const Json& object) {
        const Json* owners = kube::FindPath(object, {"metadata", "ownerReferences"});
        const Json* status = kube::Find(object, "status");
        Written& one = written[KeyOf(kube::StringAt(object, {"metadata", "namespace"}),
                                     kube::StringAt(object, {"metadata", "name"}))];
        if (owners != nullptr) one.owners = kube::DumpJson(*owners);
        if (status != nullptr) one.status = kube::DumpJson(*status);
        one.is_clear = kube::StringAt(object, {"status", "severity"}) == "None";
        return absl::OkStatus();
      });
  // A namespace that was deleted takes with it our right to look there.
  if (read.ok() || (!space.empty() && absl::IsPermissionDenied(read))) return absl::OkStatus();
  return absl::Status(read.code(), absl::StrCat("cannot read railreports: ", read.message()));
}

absl::StatusOr<bool> ReportWriter::Load() {
  if (!leads_()) return false;
  std::map<std::string, Written> written;
  for (const std::string& space : spaces_) {
    if (absl::Status listed = List(space, written); !listed.ok()) return listed;
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
  return false;
}

std::optional<ReportWriter::Wanted> ReportWriter::Next(const std::string& job) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto at = wanted_.find(job);
  if (!loaded_ || at == wanted_.end()) return std::nullopt;
  Wanted next = at->second;
  const auto written = written_.find(KeyOf(next.space, next.name));
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

absl::StatusOr<bool> ReportWriter::Write(const std::string& job) {
  const std::optional<Wanted> next = Next(job);
  if (!next || !leads_()) return false;
  const std::string key = KeyOf(next->space, next->name);
  bool is_there = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto written = written_.find(key);
    is_there = written != written_.end() && written->second.owners == next->owners;
  }
  const kube::ObjectRef object = {kRailReportVersion, kResource, next->space, next->name};
  if (!is_there) {
    Json made = ObjectNamed(next->space, next->name);
    made["metadata"]["ownerReferences"] = *kube::ParseJson(next->owners);
    absl::Status applied = kube::Apply(*api_, object, kManager, made).status();
    if (!applied.ok()) return applied;
  }
  kube::ObjectRef status = object;
  status.subresource = "status";
  Json said = ObjectNamed(next->space, next->name);
  said["status"] = *kube::ParseJson(next->status);
  absl::Status applied = kube::Apply(*api_, status, kManager, said).status();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (absl::IsNotFound(applied)) written_.erase(key);  // somebody has removed it
  if (!applied.ok()) return applied;
  written_[key] = {next->owners, next->status, next->is_clear, ""};
  Claim(job, key);
  return true;
}

void ReportWriter::Tell(const absl::Status& status) {
  const std::string now(status.message());
  if (now != trouble_ && !status.ok()) spdlog::warn("reports of jobs: {}", now);
  trouble_ = now;
}

}  // namespace railhead::op
