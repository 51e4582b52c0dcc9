// SPDX-License-Identifier: Apache-2.0
//
// What the webhook changes, as pure functions from an object to a JSON Patch. They never fail and
// never throw: an object they cannot make sense of gets no patch and a warning.
//
// Both are idempotent: applied to their own result they change nothing. That is what the API server
// asks of a webhook that it may call again after another webhook's change.
#ifndef RAILHEAD_OPERATOR_MUTATION_H_
#define RAILHEAD_OPERATOR_MUTATION_H_

#include <string>
#include <vector>

#include "kube/json.h"
#include "operator/config.h"
#include "operator/profile_set.h"

namespace railhead::op {

enum class Outcome {
  kIgnored,        // asks for no rdma/*
  kUnchanged,      // asks for it, and has everything already
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
// for any rdma/* resource, in namespace `space`. Only those containers change. The pod's profile
// wins over the configuration, and the pod over both: a variable that the container sets itself
// stays as it is and is named in the annotation railhead.io/kept-environment, as does its own mount
// of /dev/shm. Our variables go before the container's own, whose $(NAME) references may then use
// them. The annotation railhead.io/profile says which profile it was, and its generation. A pod
// that asks to start with its gang gets a scheduling gate, where gangs are served.
Mutation MutatePod(const kube::Json& pod, const InjectionConfig& config, const ProfileSet& profiles,
                   const std::string& space);

// Writes the number of pods of an Indexed Job into its pod template, where MutatePod finds it as
// WORLD_SIZE; and, where gangs are served, the size of its gang for pods that ask to start together
// (gangs/gang_gate.h). Warns of Jobs whose ranks could not find each other.
Mutation StampJob(const kube::Json& job, const InjectionConfig& config);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_MUTATION_H_
