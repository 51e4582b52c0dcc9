// SPDX-License-Identifier: Apache-2.0
//
// One reliable connected queue pair, and messages over it: each delivers a value to the peer's
// process after its bytes, if any, are in place (immediate_pair.h, iwarp_pair.h).
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_QUEUE_PAIR_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_QUEUE_PAIR_H_

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/transport/verbs/completion_queue.h"
#include "runtime/transport/verbs/device_port.h"

namespace railhead::transport::verbs {

// Address of the peer's queue pair, and the path to it.
struct PeerPath {
  uint32_t qp_number = 0;
  ibv_mtu mtu = IBV_MTU_1024;
  uint16_t pkey_index = 0;  // in this side's table
  ibv_ah_attr route = {};
};

struct QueueDepths {
  uint32_t send = 0;
  uint32_t receive = 0;
};

// Bytes in registered local memory.
struct LocalBytes {
  absl::Span<const std::byte> bytes;
  uint32_t local_key = 0;
};

struct Message {
  uint32_t value = 0;  // delivered to the peer's process
  // Bytes for the peer's memory, consecutive; `second` only with `first`.
  LocalBytes first;
  LocalBytes second;
  uint64_t remote_address = 0;
  uint32_t remote_key = 0;
  // Bytes for another place of the peer's memory, in place before the value is delivered.
  LocalBytes placed;
  uint64_t placed_address = 0;
  uint32_t placed_key = 0;
};

// Lifecycle: initialized -> (post receives) -> connected (connection.h) -> send and receive. Use
// from one thread at a time. `port` must outlive it.
class QueuePair {
 public:
  // Creates the kind that the port's network needs, with depths in messages.
  static absl::StatusOr<std::unique_ptr<QueuePair>> Create(
      const DevicePort& port, std::shared_ptr<CompletionQueue> completions, QueueDepths depths);
  // Returns the maximum number of completions of such a queue pair.
  static uint32_t CompletionsOf(const DevicePort& port, QueueDepths depths);
  virtual ~QueuePair() = default;
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  uint32_t number() const { return pair_->qp_num; }
  // In messages.
  QueueDepths depths() const { return depths_; }

  // InfiniBand and RoCE: connects without waiting for the peer. `reads`: maximum number of reads
  // under way, in each direction.
  absl::Status Connect(const PeerPath& path, uint32_t receive_psn, uint32_t send_psn,
                       uint8_t reads = 0);

  // Posts `count` receives of one message each; each completes with `id`.
  virtual absl::Status PostReceives(uint32_t count, uint64_t id) = 0;
  // Sends a message. With `signaled`, its completion proves that the peer's NIC has it and
  // everything before it.
  virtual absl::Status Send(const Message& message, uint64_t id, bool signaled) = 0;
  // Completes like a signaled message but delivers nothing to the peer's process.
  virtual absl::Status Probe(uint64_t id, uint64_t remote_address, uint32_t remote_key) = 0;
  // Returns the value of the message that completed a receive, once and in order. InvalidArgument
  // if it is not a message.
  virtual absl::StatusOr<uint32_t> Take(const ibv_wc& completion) = 0;
  // Maximum time without a completion while the peer's NIC should answer and the port is up.
  virtual absl::Duration patience() const = 0;

 protected:
  // `access`: ibv_access_flags. A message takes up to `requests_per_send` work requests.
  QueuePair(const DevicePort& port, std::shared_ptr<CompletionQueue> completions,
            QueueDepths depths, int access, uint32_t requests_per_send)
      : port_(port),
        completions_(std::move(completions)),
        depths_(depths),
        access_(access),
        requests_per_send_(requests_per_send) {}

  const DevicePort& port() const { return port_; }
  // Maximum bytes sent inline; others are read later.
  uint32_t max_inline() const { return max_inline_; }

  // Creates and initializes it.
  absl::Status CreatePair();
  void DestroyPair() { pair_.reset(); }
  // A message's bytes as the list and flags of a write work request.
  struct Write {
    std::array<ibv_sge, 2> pieces;
    int count = 0;
    unsigned flags = 0;  // inline, if it fits
  };
  Write WriteOf(const Message& message) const;
  // A work request that reads or writes the peer's memory, of the one piece. `piece` must live
  // until it is posted.
  static ibv_send_wr OneSided(ibv_wr_opcode opcode, const LocalBytes& bytes, uint64_t address,
                              uint32_t key, uint64_t id, ibv_sge& piece);
  // The write of `placed`, or nullopt without any. `piece` must live until it is posted.
  static std::optional<ibv_send_wr> PlacedWrite(const Message& message, uint64_t id,
                                                ibv_sge& piece);
  absl::Status PostSends(ibv_send_wr& first);
  absl::Status PostReceiveList(ibv_recv_wr& first);

 private:
  absl::Status Initialize();
  absl::Status Modify(ibv_qp_attr& attributes, int mask, absl::string_view what);

  const DevicePort& port_;
  const std::shared_ptr<CompletionQueue> completions_;
  const QueueDepths depths_;
  const int access_;
  const uint32_t requests_per_send_;
  Owned<ibv_qp> pair_;
  uint32_t max_inline_ = 0;
};

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_QUEUE_PAIR_H_
