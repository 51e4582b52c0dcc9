// SPDX-License-Identifier: Apache-2.0
//
// A pod on its way through the phases of admission (mutation.cc has their list). Pure.
#ifndef RAILHEAD_OPERATOR_ADMISSION_POD_ADMISSION_H_
#define RAILHEAD_OPERATOR_ADMISSION_POD_ADMISSION_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kube/json.h"
#include "operator/admission/annotations.h"
#include "operator/admission/draft.h"
#include "operator/config.h"
#include "operator/not_done.h"
#include "operator/profiles/profile.h"
#include "operator/profiles/profile_set.h"

namespace railhead::op {

// Annotations that admission writes.
inline constexpr char kProfile[] = "railhead.io/profile";    // "NAME@GENERATION"
inline constexpr char kInjected[] = "railhead.io/injected";  // the version of Railhead
// The port of the runtime's page; a user's, or ours where a profile injects the runtime.
inline constexpr char kMetricsPort[] = "railhead.io/metrics-port";
inline constexpr char kKept[] = "railhead.io/kept-environment";  // names, with commas

// What is the same for all containers of a pod.
struct PodSettings {
  const RailProfile* profile = nullptr;            // the one that matches; null for none
  std::string stamp;                               // "NAME@GENERATION"; empty without a profile
  std::map<std::string, std::string> environment;  // of the configuration, over it the profile's
  std::map<std::string, std::string> reasons;      // of the profile's variables, by name
};

// What has been through the pod before this call.
enum class Earlier {
  kNothing,
  kPolicy,   // the chart's admission policy, which knows no profile
  kWebhook,  // this webhook: the API server calls it again after another webhook's change
};

struct PodAdmission {
  const InjectionConfig& config;
  // Those that ask for RDMA, below its spec (FindRdmaContainers). Init containers, which would move
  // them, are added last.
  std::vector<std::string> containers = {};
  PodSettings settings = {};
  Earlier earlier = Earlier::kNothing;
  // The variables that a container sets itself: those that an earlier call noted, and all so far.
  std::set<std::string> kept_before = {};
  std::set<std::string> kept = {};
  Annotations annotations = {};            // as they will be
  std::vector<NotDoneNote> not_done = {};  // each reason once
  // kube-scheduler places it, and its rank is known when its gang has its nodes.
  bool waits_for_rank = false;
  Draft draft;
};

// Notes what was not done for the pod, and warns its creator unless nobody asked for it. What has
// been noted before stays as it is.
void NoteNotDone(NotDoneNote note, PodAdmission& admission);

// The admission of a pod of namespace `space` before its first phase. `config` and `profiles` must
// outlive it. InvalidArgument when its annotations are not what Kubernetes says they are.
absl::StatusOr<PodAdmission> BeginPodAdmission(const kube::Json& pod, const InjectionConfig& config,
                                               const ProfileSet& profiles,
                                               const std::string& space);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_ADMISSION_POD_ADMISSION_H_
