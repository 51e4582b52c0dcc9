// SPDX-License-Identifier: Apache-2.0
#include "operator/admission/mutation.h"

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "operator/admission/environment.h"
#include "operator/admission/gang_gate.h"
#include "operator/admission/init_container.h"
#include "operator/admission/job_stamp.h"
#include "operator/admission/launcher.h"
#include "operator/admission/libraries.h"
#include "operator/admission/pod_admission.h"
#include "operator/admission/quoted.h"
#include "operator/admission/rank_wait.h"
#include "operator/admission/shared_memory.h"
#include "operator/objects/draft.h"
#include "operator/objects/rdma_containers.h"

namespace railhead::op {
namespace {

using kube::Find;
using kube::FindPath;
using kube::Json;
using kube::StringAt;

constexpr char kUsualMetricsPort[] = "9402";

absl::Status AddProfilesSharedMemory(PodAdmission& admission) {
  const RailProfile* profile = admission.settings.profile;
  if (profile == nullptr || profile->shared_memory_size.empty()) return absl::OkStatus();
  return AddSharedMemory(profile->shared_memory_size, admission.containers, admission.draft);
}

// Warns about a profile annotation that does not match. Not on reinvocation: then the earlier call
// has warned, and the annotation is its own stamp.
void WarnOfForeignStamp(PodAdmission& admission) {
  const PodSettings& settings = admission.settings;
  const auto stamp = admission.annotations.find(kProfile);
  if (stamp == admission.annotations.end() || stamp->second == settings.stamp ||
      admission.earlier == Earlier::kWebhook) {
    return;
  }
  admission.draft.Warn(absl::StrCat("metadata.annotations[", kProfile, "]: ", Quoted(stamp->second),
                                    " is ignored, because the operator sets this annotation: ",
                                    settings.profile == nullptr
                                        ? "no RailProfile matches the pod"
                                        : "the pod gets " + settings.stamp));
}

// A port as Kubernetes writes it: 1 to 65535, in digits alone.
bool IsPort(const std::string& text) {
  int port = 0;
  return !text.empty() && text.size() <= 5 && text[0] != '0' &&
         text.find_first_not_of("0123456789") == std::string::npos &&
         absl::SimpleAtoi(text, &port) && port <= 65535;
}

// Returns the port of the runtime's metrics; empty if the pod may not serve them: Prometheus would
// report a program that uses only NCCL as a target that is down.
std::string MetricsPortOf(PodAdmission& admission) {
  const auto said = admission.annotations.find(kMetricsPort);
  if (said != admission.annotations.end()) {
    if (IsPort(said->second)) return said->second;
    admission.draft.Warn(absl::StrCat("metadata.annotations[", kMetricsPort, "]: ",
                                      Quoted(said->second), " must be a port from 1 to 65535"));
    return "";
  }
  const RailProfile* profile = admission.settings.profile;
  const bool injects = profile != nullptr &&
                       (!profile->inject.runtime_image.empty() || profile->inject.own_plugin());
  return injects ? kUsualMetricsPort : "";
}

absl::Status AddAnnotations(PodAdmission& admission) {
  WarnOfForeignStamp(admission);
  Annotations& wanted = admission.annotations;
  if (admission.settings.profile != nullptr) wanted[kProfile] = admission.settings.stamp;
  if (admission.kept != admission.kept_before) wanted[kKept] = absl::StrJoin(admission.kept, ",");
  wanted[kInjected] = RAILHEAD_VERSION;
  // Scrape annotations of the user are for another endpoint, for which our port and path would be
  // wrong.
  if (const std::string port = MetricsPortOf(admission); !port.empty()) {
    wanted[kMetricsPort] = port;
    if (!wanted.contains("prometheus.io/scrape")) {
      wanted.emplace("prometheus.io/scrape", "true");
      wanted.emplace("prometheus.io/port", port);
      wanted.emplace("prometheus.io/path", "/metrics");
    }
  }
  return WriteAnnotations("", wanted, admission.draft);
}

absl::Status AddGate(PodAdmission& admission) {
  std::optional<NotDoneNote> refused;
  const absl::Status done = admission.config.gangs
                                ? AddGangGate(admission.config.gang_kinds, admission.annotations,
                                              refused, admission.draft)
                                : NoteGangsAreOff(admission.draft.object(), refused);
  if (refused) NoteNotDone(*std::move(refused), admission);
  return done;
}

absl::Status AddInits(PodAdmission& admission) {
  std::vector<Json> inits;
  if (admission.waits_for_rank) {
    absl::StatusOr<std::optional<Json>> wait =
        AddRankWait("/spec" + admission.containers.front(), admission.draft);
    if (!wait.ok()) return wait.status();
    if (*wait) inits.push_back(**std::move(wait));
  }
  if (admission.settings.profile != nullptr) {
    const absl::StatusOr<std::vector<Json>> copies =
        AddLibraries(admission.settings.profile->inject, admission.containers, admission.draft);
    if (!copies.ok()) return copies.status();
    inits.insert(inits.begin(), copies->begin(), copies->end());
  }
  return AddInitContainers(inits, admission.draft);
}

// In this order: each phase's notes are collected before annotations are written, and init
// containers move the containers that the other phases read.
constexpr absl::Status (*kPodPhases[])(PodAdmission&) = {
    AddEnvironment, PassOnEnvironment, AddProfilesSharedMemory, AddGate,
    AddNotDone,     AddInits,          AddAnnotations};

Mutation NotUnderstood(absl::string_view kind, const absl::Status& why) {
  Mutation mutation;
  mutation.outcome = Outcome::kNotUnderstood;
  mutation.warnings.push_back(
      absl::StrCat("railhead: the ", kind, " is admitted unchanged: ", why.message()));
  return mutation;
}

Mutation Finish(const Draft& draft) {
  Mutation mutation;
  mutation.outcome = draft.patch().empty() ? Outcome::kUnchanged : Outcome::kMutated;
  mutation.patch = draft.patch();
  mutation.warnings = draft.warnings();
  return mutation;
}

// FindRdmaContainers; InvalidArgument also when there is no such spec.
absl::StatusOr<std::vector<std::string>> ContainersIn(const Json* spec, const RdmaResources& rdma,
                                                      absl::string_view path) {
  if (spec == nullptr || !spec->is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is not an object"));
  }
  return FindRdmaContainers(*spec, rdma);
}

absl::StatusOr<Mutation> TryMutatePod(const Json& pod, const InjectionConfig& config,
                                      const ProfileSet& profiles, const std::string& space) {
  absl::StatusOr<std::vector<std::string>> containers =
      ContainersIn(Find(pod, "spec"), config.rdma_resources, "spec");
  if (!containers.ok()) return containers.status();
  if (containers->empty() && !IsLauncher(pod)) return Mutation();
  const std::string system = StringAt(pod, {"spec", "os", "name"});
  if (!system.empty() && system != "linux") {
    Draft draft(Json::object());
    draft.Warn(absl::StrCat("nothing is added to the pod: spec.os.name is ", Quoted(system),
                            ", but Railhead supports only Linux"));
    return Finish(draft);
  }
  absl::StatusOr<PodAdmission> admission = BeginPodAdmission(pod, config, profiles, space);
  if (!admission.ok()) return admission.status();
  admission->containers = *std::move(containers);
  if (admission->containers.empty()) {
    if (absl::Status admitted = AdmitLauncher(*admission); !admitted.ok()) return admitted;
    return Finish(admission->draft);
  }
  for (const auto& phase : kPodPhases) {
    if (absl::Status done = phase(*admission); !done.ok()) return done;
  }
  Mutation mutation = Finish(admission->draft);
  for (const auto& [name, reason] : admission->settings.reasons) {
    mutation.reasons.push_back(absl::StrCat(
        reason,
        admission->kept.contains(name) ? ", except in containers that set it themselves" : ""));
  }
  return mutation;
}

// `before` is null for a new Job.
absl::StatusOr<Mutation> TryStampJob(const Json* before, const Json& job,
                                     const InjectionConfig& config) {
  const absl::StatusOr<std::vector<std::string>> containers = ContainersIn(
      FindPath(job, {"spec", "template", "spec"}), config.rdma_resources, "spec.template.spec");
  if (!containers.ok()) return containers.status();
  if (containers->empty()) return Mutation();
  Draft draft(job);
  absl::Status stamped =
      before == nullptr ? StampTemplate(config, draft) : RestampTemplate(config, *before, draft);
  if (!stamped.ok()) return stamped;
  return Finish(draft);
}

}  // namespace

Mutation MutatePod(const Json& pod, const InjectionConfig& config, const ProfileSet& profiles,
                   const std::string& space) {
  const absl::StatusOr<Mutation> mutation = TryMutatePod(pod, config, profiles, space);
  return mutation.ok() ? *mutation : NotUnderstood("pod", mutation.status());
}

Mutation StampJob(const Json& job, const InjectionConfig& config) {
  const absl::StatusOr<Mutation> mutation = TryStampJob(nullptr, job, config);
  return mutation.ok() ? *mutation : NotUnderstood("Job", mutation.status());
}

Mutation RestampJob(const Json& before, const Json& job, const InjectionConfig& config) {
  const absl::StatusOr<Mutation> mutation = TryStampJob(&before, job, config);
  return mutation.ok() ? *mutation : NotUnderstood("Job", mutation.status());
}

}  // namespace railhead::op
