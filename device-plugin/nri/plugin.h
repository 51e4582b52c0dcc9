// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_DEVICE_PLUGIN_NRI_PLUGIN_H_
#define RAILHEAD_DEVICE_PLUGIN_NRI_PLUGIN_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kube/backoff.h"

namespace railhead::device_plugin::nri {

// A Session with the container runtime of this node, for as long as it runs: one that ends, or
// cannot be had, is begun anew after a pause. Containers that are created meanwhile keep the limits
// that the runtime gives them.
class Plugin {
 public:
  // `socket`: where the runtime listens, /var/run/nri/nri.sock by default.
  Plugin(std::string socket, kube::BackoffOptions backoff)
      : socket_(std::move(socket)), backoff_(backoff, kube::SystemRandom()) {}

  // Until `stop_fd` is readable.
  void Run(int stop_fd);

  // Thread-safe. Ok while the runtime asks us.
  absl::Status Ready() const;
  // Thread-safe. For Prometheus: railhead_memlock_registered, railhead_memlock_raised_total.
  std::string Metrics() const;

 private:
  // One connection, until it ends; Cancelled when that is because of `stop_fd`.
  absl::Status Converse(int stop_fd);

  const std::string socket_;
  kube::Backoff backoff_;
  std::atomic<bool> registered_{false};
  std::atomic<uint64_t> raised_{0};
};

}  // namespace railhead::device_plugin::nri

#endif  // RAILHEAD_DEVICE_PLUGIN_NRI_PLUGIN_H_
