// SPDX-License-Identifier: Apache-2.0
//
// Changes by the webhook, as pure functions from an object to a JSON Patch. They never fail or
// throw: a malformed object gets no patch, but a warning.
//
// Both are idempotent: their own output gets an empty patch. The API server requires that, since it
// may call a webhook again after another webhook's change.
#ifndef RAILHEAD_OPERATOR_ADMISSION_MUTATION_H_
#define RAILHEAD_OPERATOR_ADMISSION_MUTATION_H_

#include <string>
#include <vector>

#include "kube/json.h"
#include "operator/config/config.h"
#include "operator/profiles/profile_set.h"

namespace railhead::op {

enum class Outcome {
  kIgnored,        // requests no RDMA
  kUnchanged,      // requests RDMA; complete already, or nothing can be added
  kMutated,        // `patch` is not empty
  kNotUnderstood,  // a part of it has the wrong type
};

struct Mutation {
  Outcome outcome = Outcome::kIgnored;
  kube::Json patch = kube::Json::array();
  std::vector<std::string> warnings;  // for the user, one sentence each
  std::vector<std::string> reasons;   // variables from a profile, each with its field
};

// Adds environment, /dev/shm and annotations to a pod of namespace `space` with containers (or init
// containers) that request an RDMA resource. Changes only those containers. The pod's profile takes
// precedence over the configuration, and the pod over both: variables that a container sets itself,
// and its own mount of /dev/shm, are kept. The annotation railhead.io/kept-environment lists such
// variables; railhead.io/profile names the profile and its generation. If gangs are on, a pod that
// requests to start with its gang gets a scheduling gate. A pod of an operating system other than
// Linux is unchanged, with a warning.
Mutation MutatePod(const kube::Json& pod, const InjectionConfig& config, const ProfileSet& profiles,
                   const std::string& space);

// Annotates a Job's template for its pods (job_stamp.h).
Mutation StampJob(const kube::Json& job, const InjectionConfig& config);

// Likewise for a Job that changes from `before`.
Mutation RestampJob(const kube::Json& before, const kube::Json& job, const InjectionConfig& config);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_ADMISSION_MUTATION_H_
