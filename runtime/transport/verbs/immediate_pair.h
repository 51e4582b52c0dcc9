// SPDX-License-Identifier: Apache-2.0
//
// Queue pair of InfiniBand or RoCE: a message is a write with immediate, which consumes a receive
// without memory. The NIC acknowledges writes, and reports an error if the peer does not respond.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_IMMEDIATE_PAIR_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_IMMEDIATE_PAIR_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "runtime/transport/verbs/queue_pair.h"

namespace railhead::transport::verbs {

class ImmediatePair final : public QueuePair {
 public:
  static constexpr uint32_t kRequestsPerSend = 2;  // a write of placed bytes, and the message

  static absl::StatusOr<std::unique_ptr<QueuePair>> Create(
      const DevicePort& port, std::shared_ptr<CompletionQueue> completions, QueueDepths depths);

  // A pair that its peer may also read by.
  static absl::StatusOr<std::unique_ptr<ImmediatePair>> CreateReadable(
      const DevicePort& port, std::shared_ptr<CompletionQueue> completions, QueueDepths depths);

  // Signaled, and without news for the peer's process: writes the placed bytes of the message;
  // reads as many bytes as `into` has.
  absl::Status PostWrite(const Message& message, uint64_t id);
  absl::Status PostRead(const LocalBytes& into, uint64_t remote_address, uint32_t remote_key,
                        uint64_t id);

  absl::Status PostReceives(uint32_t count, uint64_t id) override;
  absl::Status Send(const Message& message, uint64_t id, bool signaled) override;
  // Posts an empty write.
  absl::Status Probe(uint64_t id, uint64_t remote_address, uint32_t remote_key) override;
  absl::StatusOr<uint32_t> Take(const ibv_wc& completion) override;
  absl::Duration patience() const override { return absl::Seconds(20); }

 private:
  ImmediatePair(const DevicePort& port, std::shared_ptr<CompletionQueue> completions,
                QueueDepths depths, int access)
      : QueuePair(port, std::move(completions), depths, access, kRequestsPerSend) {}
  static absl::StatusOr<std::unique_ptr<ImmediatePair>> CreateWith(
      const DevicePort& port, std::shared_ptr<CompletionQueue> completions, QueueDepths depths,
      int access);
};

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_IMMEDIATE_PAIR_H_
