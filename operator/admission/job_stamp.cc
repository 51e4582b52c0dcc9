// SPDX-License-Identifier: Apache-2.0
#include "operator/admission/job_stamp.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "jobs/job_set.h"
#include "jobs/labels.h"
#include "jobs/mpirun.h"
#include "operator/admission/gang_gate.h"
#include "operator/objects/annotations.h"
#include "operator/objects/names.h"

namespace railhead::op {
namespace {

using kube::FindPath;
using kube::Json;
using kube::StringAt;

constexpr char kTemplate[] = "/spec/template";

// Stamps that depend on how many pods the Job has.
constexpr const char* kSizeStamps[] = {jobs::kWorldSize, gangs::kGangSize};

int CountAt(const Json& job, absl::string_view field) {
  const Json* value = FindPath(job, {"spec", field});
  return value != nullptr && value->is_number_integer() && *value >= 0 && *value <= 1'000'000'000
             ? value->get<int>()
             : 1;
}

bool IsIndexed(const Json& job) { return StringAt(job, {"spec", "completionMode"}) == "Indexed"; }

void WarnOfLostRanks(int completions, int parallelism, Draft& job) {
  const bool indexed = IsIndexed(job.object());
  if (!indexed && (completions > 1 || parallelism > 1)) {
    job.Warn("no RANK for the pods of this Job: set spec.completionMode to Indexed");
  }
  if (indexed && completions > 1 &&
      StringAt(job.object(), {"spec", "template", "spec", "subdomain"}).empty()) {
    job.Warn("no MASTER_ADDR: set spec.template.spec.subdomain to a headless Service");
  }
  if (indexed && parallelism > 0 && parallelism < completions) {  // 0 is a Job that was paused
    job.Warn(absl::StrCat("ranks wait for each other, but only ", parallelism, " of ", completions,
                          " pods run at once: raise parallelism"));
  }
}

// Returns whether mpirun assigns the ranks in the Job's pods, so that its size is not theirs.
bool HasRanksOfMpirun(const Json& job) {
  const Json* spec = FindPath(job, {"spec", "template", "spec"});
  return spec != nullptr && jobs::IsStartedByMpirun(*spec);
}

// Returns the stamps that a Job would get if its template had no stamp.
absl::StatusOr<Annotations> FreshStamps(const InjectionConfig& config, Json job) {
  if (FindPath(job, {"spec", "template"}) == nullptr) {
    return absl::InvalidArgumentError("spec.template is missing");
  }
  if (const Json* annotations = FindPath(job, {"spec", "template", "metadata", "annotations"});
      annotations != nullptr && annotations->is_object()) {
    for (const char* stamp : kSizeStamps) {
      job["spec"]["template"]["metadata"]["annotations"].erase(stamp);
    }
  }
  Draft fresh(std::move(job));
  if (absl::Status stamped = StampTemplate(config, fresh); !stamped.ok()) return stamped;
  return ReadAnnotations(*fresh.At(kTemplate));
}

std::string ValueOf(const Annotations& annotations, const char* name) {
  const auto found = annotations.find(name);
  return found == annotations.end() ? "" : found->second;
}

// Returns whether the API server accepts template changes: only of a suspended Job without pods.
bool TemplateMayChange(const Json& before) {
  const Json* suspended = FindPath(before, {"spec", "suspend"});
  return suspended != nullptr && *suspended == true &&
         StringAt(before, {"status", "startTime"}).empty();
}

}  // namespace

absl::Status StampTemplate(const InjectionConfig& config, Draft& job) {
  const int completions = CountAt(job.object(), "completions");
  const int parallelism = CountAt(job.object(), "parallelism");
  const bool by_mpirun = HasRanksOfMpirun(job.object());
  if (!by_mpirun) WarnOfLostRanks(completions, parallelism, job);
  absl::StatusOr<Annotations> wanted = ReadAnnotations(*job.At(kTemplate));
  if (!wanted.ok()) return wanted.status();
  if (IsIndexed(job.object()) && !by_mpirun) {
    const int jobs = jobs::JobsTogether(job.object(), *job.At(kTemplate));
    const std::string world = absl::StrCat(int64_t{completions} * jobs);
    const auto [stamp, is_new] = wanted->emplace(jobs::kWorldSize, world);
    // As of one that was made out of another's YAML.
    if (!is_new && stamp->second != world) {
      job.Warn(absl::StrCat("spec.template.metadata.annotations[", jobs::kWorldSize, "] is ",
                            stamp->second, ", but spec.completions is ", completions,
                            jobs == 1 ? "" : absl::StrCat(" in each of ", jobs, " Jobs"),
                            ": remove the annotation if WORLD_SIZE is to follow spec.completions"));
    }
  }
  if (config.gangs) StampGangSize(config.gang_kinds, parallelism, *wanted, job);
  if (absl::Status written = WriteAnnotations(kTemplate, *wanted, job); !written.ok()) {
    return written;
  }
  if (config.gangs && wanted->contains(gangs::kGangSize)) AddGangLabel(config.gang_kinds, job);
  return absl::OkStatus();
}

absl::Status RestampTemplate(const InjectionConfig& config, const Json& before, Draft& job) {
  const absl::StatusOr<Annotations> old_stamps = FreshStamps(config, before);
  if (!old_stamps.ok()) return old_stamps.status();
  const absl::StatusOr<Annotations> new_stamps = FreshStamps(config, job.object());
  if (!new_stamps.ok()) return new_stamps.status();
  absl::StatusOr<Annotations> wanted = ReadAnnotations(*job.At(kTemplate));
  if (!wanted.ok()) return wanted.status();
  for (const char* stamp : kSizeStamps) {
    const std::string is = ValueOf(*wanted, stamp);
    const std::string ought = ValueOf(*new_stamps, stamp);
    if (is.empty() || ought.empty() || is == ought || is != ValueOf(*old_stamps, stamp)) continue;
    if (TemplateMayChange(before)) {
      (*wanted)[stamp] = ought;
    } else {
      job.Warn(absl::StrCat("spec.template.metadata.annotations[", stamp, "] stays ", is,
                            " but should be ", ought,
                            ": the template of a started Job cannot change; set spec.suspend to "
                            "true, change the size when the pods are gone, and resume the Job"));
    }
  }
  return WriteAnnotations(kTemplate, *wanted, job);
}

}  // namespace railhead::op
