// SPDX-License-Identifier: Apache-2.0
//
// NRI plugin of the agent: raises the limit of locked memory of new containers with RDMA devices.
// Used by main.cc (--nri-socket).
#ifndef RAILHEAD_DEVICE_PLUGIN_NRI_PLUGIN_H_
#define RAILHEAD_DEVICE_PLUGIN_NRI_PLUGIN_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kube/backoff.h"

namespace railhead::device_plugin::nri {

// Keeps a Session with the node's container runtime, and reconnects with backoff after it ends.
// Containers created while there is none keep the runtime's limits.
class Plugin {
 public:
  // `socket`: the runtime's NRI socket, /var/run/nri/nri.sock by default.
  Plugin(std::string socket, kube::BackoffOptions backoff)
      : socket_(std::move(socket)), backoff_(backoff, kube::SystemRandom()) {}

  // Runs until `stop_fd` is readable.
  void Run(int stop_fd);

  // Returns OK while the runtime calls the plugin. Thread-safe.
  absl::Status Ready() const;
  // Prometheus text: railhead_memlock_registered, railhead_memlock_raised_total. Thread-safe.
  std::string Metrics() const;

 private:
  // Runs one connection until it ends; Cancelled if `stop_fd` ended it.
  absl::Status Converse(int stop_fd);

  const std::string socket_;
  kube::Backoff backoff_;
  std::atomic<bool> registered_{false};
  std::atomic<uint64_t> raised_{0};
};

}  // namespace railhead::device_plugin::nri

#endif  // RAILHEAD_DEVICE_PLUGIN_NRI_PLUGIN_H_
