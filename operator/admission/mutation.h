// SPDX-License-Identifier: Apache-2.0
//
// What the webhook changes, as pure functions from an object to a JSON Patch. They never fail and
// never throw: an object they cannot make sense of gets no patch and a warning.
//
// Both are idempotent: applied to their own result they change nothing. That is what the API server
// asks of a webhook that it may call again after another webhook's change.
#ifndef RAILHEAD_OPERATOR_ADMISSION_MUTATION_H_
#define RAILHEAD_OPERATOR_ADMISSION_MUTATION_H_

#include <string>
#include <vector>

#include "kube/json.h"
#include "operator/config.h"
#include "operator/profiles/profile_set.h"

namespace railhead::op {

enum class Outcome {
  kIgnored,        // asks for no RDMA
  kUnchanged,      // asks for it, and has everything already, or nothing can be done for it
  kMutated,        // `patch` is not empty
  kNotUnderstood,  // a part of it is not what Kubernetes says it is
};

struct Mutation {
  Outcome outcome = Outcome::kIgnored;
  kube::Json patch = kube::Json::array();
  std::vector<std::string> warnings;  // for the user, each one sentence
  std::vector<std::string> reasons;   // which variable a profile gives, and by which of its fields
};

// The environment, /dev/shm and annotations of a pod with containers (or init containers) that ask
// for any RDMA resource, in namespace `space`. Only those containers change. The pod's profile
// wins over the configuration, and the pod over both: a variable that the container sets itself
// stays as it is and is named in the annotation railhead.io/kept-environment, as does its own mount
// of /dev/shm. The annotation railhead.io/profile says which profile it was, and its generation. A
// pod that asks to start with its gang gets a scheduling gate, where gangs are served. A pod of
// another operating system than Linux is left alone, with a warning.
Mutation MutatePod(const kube::Json& pod, const InjectionConfig& config, const ProfileSet& profiles,
                   const std::string& space);

// What a Job's template is given for its pods (job_stamp.h).
Mutation StampJob(const kube::Json& job, const InjectionConfig& config);

// The same for a Job that was `before` and changes.
Mutation RestampJob(const kube::Json& before, const kube::Json& job, const InjectionConfig& config);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_ADMISSION_MUTATION_H_
