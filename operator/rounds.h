// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_ROUNDS_H_
#define RAILHEAD_OPERATOR_ROUNDS_H_

#include <functional>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kube/informer.h"
#include "kube/work_queue.h"

namespace railhead::op {

// A controller that looks at all it watches at once, in rounds: whenever something has changed, and
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
  // What an informer of this resource calls: any of its changes asks for a round after `settle`.
  template <typename T>
  typename kube::Informer<T>::Callbacks Watching(std::string resource, absl::Duration settle) {
    return {[this, settle](const std::string&, const auto&, const auto&) { AskAfter(settle); },
            [this] { Ask(); },
            [this, resource = std::move(resource)](const absl::Status& end) {
              TellEnd(resource, end);
            }};
  }

  // Calls `round` until `stop`. Once in its life.
  void Run(const std::stop_token& stop, const std::function<absl::Status()>& round);

 private:
  void TellEnd(const std::string& resource, const absl::Status& end);

  const std::string name_;
  kube::WorkQueue queue_;  // of one item
  std::string trouble_;    // as told; Run's alone
  std::mutex mutex_;
  std::map<std::string, std::string> watch_trouble_;  // as told, by resource; guarded by mutex_
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_ROUNDS_H_
