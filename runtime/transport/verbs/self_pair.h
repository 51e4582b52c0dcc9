// SPDX-License-Identifier: Apache-2.0
//
// A queue pair of InfiniBand or RoCE that is connected to itself: the NIC reads and writes memory
// of its own node. For memory of a device, which the CPU must not access: bytes that could not be
// placed by the peer (channel.h) are written by the NIC, and a read makes earlier writes visible,
// because it waits for them on their way to the device (PCI Express specification, table "Ordering
// Rules": a read passes no posted write).
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_SELF_PAIR_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_SELF_PAIR_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/transport/verbs/completion_queue.h"
#include "runtime/transport/verbs/device_port.h"
#include "runtime/transport/verbs/immediate_pair.h"
#include "runtime/transport/verbs/ring.h"

namespace railhead::transport::verbs {

// Thread-safe. Its calls wait for the NIC, microseconds and at most a second; errors name the
// device: Unavailable while its port is down, else Internal. After an error it connects anew.
class SelfPair {
 public:
  // Connects on first use. FailedPrecondition over iWARP, which cannot do this.
  static absl::StatusOr<std::unique_ptr<SelfPair>> Create(std::shared_ptr<const DevicePort> port);
  SelfPair(const SelfPair&) = delete;
  SelfPair& operator=(const SelfPair&) = delete;

  // Memory is registered with this device for writes and reads of peers; `key` is its remote key.
  // `to` and `address` may be addresses that only the NIC can use.
  absl::Status Write(uint64_t to, uint32_t key, absl::Span<const std::byte> from);
  absl::Status Read(uint64_t address, uint32_t key, absl::Span<std::byte> to);
  // Waits until everything that the NIC has written to that memory is visible to the device.
  absl::Status Flush(uint64_t address, uint32_t key);
  // Writes a pattern, reads it, and restores what was there: a path between NIC and device that
  // loses or changes data is an error.
  absl::Status Verify(uint64_t address, uint32_t key, size_t size);

 private:
  SelfPair(std::shared_ptr<const DevicePort> port, Ring ring)
      : port_(std::move(port)), ring_(std::move(ring)) {}

  absl::Status Connect();
  absl::Status Run(absl::FunctionRef<absl::Status(uint64_t id)> post);
  absl::Status RunOnce(absl::FunctionRef<absl::Status(uint64_t id)> post);
  absl::Status ReadOnce(uint64_t address, uint32_t key, size_t size);

  const std::shared_ptr<const DevicePort> port_;
  std::mutex mutex_;  // guards all below
  Ring ring_;         // its first slot holds the bytes of a call
  std::shared_ptr<CompletionQueue> completions_;
  std::unique_ptr<ImmediatePair> pair_;  // null before a connection; destroyed first
  uint64_t last_id_ = 0;
};

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_SELF_PAIR_H_
