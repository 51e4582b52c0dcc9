// SPDX-License-Identifier: Apache-2.0
//
// The secret that the node agent gives to the containers of a job, so that its users need not make
// one. The agent mounts an empty folder when it allocates HCAs, before it knows the pod, and puts a
// file into it as soon as it does: `key` with the job's secret, or `none` with the reason why no
// secret comes. Both appear whole (by a rename), and do not change while the pod runs.
//
//   absl::StatusOr<JobSecret> found = AwaitJobSecret("/run/railhead/secret", deadline, aborted);
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_JOB_SECRET_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_JOB_SECRET_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/base/halt.h"

namespace railhead::bootstrap {

// Path of the folder in containers.
inline constexpr char kJobSecretFolder[] = "/run/railhead/secret";

struct JobSecret {
  std::string secret;      // "": there is none
  bool promised = false;   // the folder is there, so a secret was expected
  std::string none_cause;  // why there is none, for people; "" with a secret
};

// Waits for one of the two files until `deadline` (monotonic), or until `halt` returns an error,
// which it then returns. Does not wait if the folder is missing. InvalidArgument for a key that is
// not a secret.
absl::StatusOr<JobSecret> AwaitJobSecret(const std::string& folder, absl::Time deadline,
                                         const Halt& halt);

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_JOB_SECRET_H_
