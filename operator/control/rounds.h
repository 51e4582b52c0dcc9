// SPDX-License-Identifier: Apache-2.0
//
// Reconcile loop of a controller that processes everything at once, in rounds: after each change,
// and after a failed round with backoff. Used by the controllers of gangs and topology.
#ifndef RAILHEAD_OPERATOR_CONTROL_ROUNDS_H_
#define RAILHEAD_OPERATOR_CONTROL_ROUNDS_H_

#include <functional>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kube/queue/work_queue.h"

namespace railhead::op {

// Logs a persistent error once.
class Rounds {
 public:
  // `name`: of the controller, for the log.
  Rounds(std::string name, const kube::BackoffOptions& backoff);

  // Requests a round. Thread-safe.
  void Ask();
  // Requests a round after `pause`, so that it covers several changes. Thread-safe.
  void AskAfter(absl::Duration pause);

  // Calls `round` until `stop`. Call once.
  void Run(const std::stop_token& stop, const std::function<absl::Status()>& round);

 private:
  const std::string name_;
  kube::WorkQueue queue_;  // with one item
  std::string trouble_;    // as logged; used by Run only
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_CONTROL_ROUNDS_H_
