// SPDX-License-Identifier: Apache-2.0
//
// Queue pair of iWARP, which has no write with immediate. A message is a write, if it has bytes,
// and a send of four bytes with its value: both use one TCP stream, so the value arrives after the
// bytes are in place (RFC 5041, section 5.3: in-order delivery).
//
// A write or send completes when TCP has it, which proves nothing about the peer. So a signaled
// request is followed by a read of a few bytes, and completes with it: the peer's NIC answers it
// after everything sent before (RFC 5040, section 5.5), without its process. A completion then
// means the same as over InfiniBand: TCP no longer needs the memory for retransmission, and a dead
// peer is detected (TCP itself would wait a quarter of an hour). The read fetches the start of the
// peer's ring, where only this side writes; its value is ignored. (An empty read would do, but siw
// sometimes answers one with data.) It has more than 32 bytes, because siw copies fewer together
// with the header, from its own thread as if in a system call; if one is just ending on the same
// queue pair, that fails and ends the connection.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_IWARP_PAIR_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_IWARP_PAIR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/transport/verbs/queue_pair.h"

namespace railhead::transport::verbs {

class IwarpPair final : public QueuePair {
 public:
  static constexpr uint32_t kRequestsPerSend = 4;  // two writes, send and read

  static absl::StatusOr<std::unique_ptr<QueuePair>> Create(
      const DevicePort& port, std::shared_ptr<CompletionQueue> completions, QueueDepths depths);
  ~IwarpPair() override;

  absl::Status PostReceives(uint32_t count, uint64_t id) override;
  absl::Status Send(const Message& message, uint64_t id, bool signaled) override;
  // Posts a read.
  absl::Status Probe(uint64_t id, uint64_t remote_address, uint32_t remote_key) override;
  absl::StatusOr<uint32_t> Take(const ibv_wc& completion) override;
  // TCP retransmits after 200 ms, then after twice that, and so on; and a slow rail may have a
  // quarter of a second of data before the read.
  absl::Duration patience() const override { return absl::Seconds(3); }

 private:
  IwarpPair(const DevicePort& port, std::shared_ptr<CompletionQueue> completions,
            QueueDepths depths);
  // Memory of values to send, used in turn, followed by that of received values.
  std::byte* Sent(uint64_t number) { return values_.data() + number % depths().send * kValueSize; }
  std::byte* Received(uint64_t number) {
    return values_.data() + (depths().send + number % depths().receive) * kValueSize;
  }
  static constexpr size_t kValueSize = sizeof(uint32_t);
  static constexpr size_t kReadSize = 64;
  std::vector<std::byte> values_;
  Owned<ibv_mr> region_;
  // Destination of reads: iWARP requires memory that the peer may write.
  std::vector<std::byte> sink_;
  Owned<ibv_mr> sink_region_;
  uint64_t sent_ = 0;
  // Receives complete in the order of posting.
  uint64_t posted_ = 0;
  uint64_t taken_ = 0;
};

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_IWARP_PAIR_H_
