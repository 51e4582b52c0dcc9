// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_ROUNDS_H_
#define RAILHEAD_OPERATOR_ROUNDS_H_

#include <functional>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kube/work_queue.h"

namespace railhead::op {

// A controller that looks at everything at once, in rounds: whenever something has changed, and
// again after a failed one, with back-off. What is in the way is logged once for as long as it
// stays.
class Rounds {
 public:
  // `name` is the controller's, for the log.
  Rounds(std::string name, const kube::BackoffOptions& backoff);

  // Thread-safe.
  void Ask();
  // Changes that come together are looked at together.
  void AskAfter(absl::Duration pause);

  // Calls `round` until `stop`. Once in its life.
  void Run(const std::stop_token& stop, const std::function<absl::Status()>& round);

 private:
  const std::string name_;
  kube::WorkQueue queue_;  // of one item
  std::string trouble_;    // as told; Run's alone
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_ROUNDS_H_
