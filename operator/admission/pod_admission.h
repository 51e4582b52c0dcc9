// SPDX-License-Identifier: Apache-2.0
//
// State of a pod during the phases of admission (listed in mutation.cc). Pure.
#ifndef RAILHEAD_OPERATOR_ADMISSION_POD_ADMISSION_H_
#define RAILHEAD_OPERATOR_ADMISSION_POD_ADMISSION_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kube/json.h"
#include "operator/config/config.h"
#include "operator/objects/annotations.h"
#include "operator/objects/draft.h"
#include "operator/objects/not_done.h"
#include "operator/profiles/profile.h"
#include "operator/profiles/profile_set.h"

namespace railhead::op {

// Annotations written by admission.
inline constexpr char kProfile[] = "railhead.io/profile";    // "NAME@GENERATION"
inline constexpr char kInjected[] = "railhead.io/injected";  // Railhead's version
// Port of the runtime's metrics; set by the user, or by admission if a profile injects the runtime.
inline constexpr char kMetricsPort[] = "railhead.io/metrics-port";
inline constexpr char kKept[] = "railhead.io/kept-environment";  // names, comma-separated

// Settings common to all containers of a pod.
struct PodSettings {
  const RailProfile* profile = nullptr;            // the matching profile; null: none
  std::string stamp;                               // "NAME@GENERATION"; empty: no profile
  std::map<std::string, std::string> environment;  // from configuration, overridden by profile
  std::map<std::string, std::string> reasons;      // of the profile's variables, by name
};

// Mutations that the pod had before this call.
enum class Earlier {
  kNothing,
  kPolicy,   // the chart's admission policy, which ignores profiles
  kWebhook,  // this webhook, called again after another webhook's change
};

struct PodAdmission {
  const InjectionConfig& config;
  // Containers that request RDMA, as pointers below spec (FindRdmaContainers). Init containers are
  // added last, because they would shift these indices.
  std::vector<std::string> containers = {};
  PodSettings settings = {};
  Earlier earlier = Earlier::kNothing;
  // Variables that containers set themselves: noted by an earlier call, and all that are known.
  std::set<std::string> kept_before = {};
  std::set<std::string> kept = {};
  Annotations annotations = {};            // final state
  std::vector<NotDoneNote> not_done = {};  // each reason once
  // kube-scheduler places the pod; its rank is unknown until its gang has nodes.
  bool waits_for_rank = false;
  Draft draft;
};

// Notes a skipped step, and warns the pod's creator unless the step was not requested. An earlier
// note is kept.
void NoteNotDone(NotDoneNote note, PodAdmission& admission);

// Starts the admission of a pod in namespace `space`. `config` and `profiles` must outlive it.
// Returns InvalidArgument if its annotations have the wrong type.
absl::StatusOr<PodAdmission> BeginPodAdmission(const kube::Json& pod, const InjectionConfig& config,
                                               const ProfileSet& profiles,
                                               const std::string& space);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_ADMISSION_POD_ADMISSION_H_
