// SPDX-License-Identifier: Apache-2.0
//
// One reliable connected queue pair, and how a message is announced over it: each tells the peer's
// process a value, once the bytes that it may bring are where they belong (immediate_pair.h,
// iwarp_pair.h).
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_QUEUE_PAIR_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_QUEUE_PAIR_H_

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/transport/verbs/completion_queue.h"
#include "runtime/transport/verbs/device_port.h"

namespace railhead::transport::verbs {

// Where the peer's queue pair is and how to reach it.
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

// Bytes in registered memory of this side.
struct LocalBytes {
  absl::Span<const std::byte> bytes;
  uint32_t local_key = 0;
};

struct Message {
  uint32_t value = 0;  // what the peer's process is told
  // For the peer's memory, one behind the other. Where there is a second, there is a first.
  LocalBytes first;
  LocalBytes second;
  uint64_t remote_address = 0;
  uint32_t remote_key = 0;
};

// Life: initialized -> (post receives) -> connected (connection.h) -> send and receive. Used by one
// thread at a time. `port` must outlive it.
class QueuePair {
 public:
  // Of the kind that the port's network needs, for so many messages.
  static absl::StatusOr<std::unique_ptr<QueuePair>> Create(
      const DevicePort& port, std::shared_ptr<CompletionQueue> completions, QueueDepths depths);
  // How many completions such a queue pair has at most.
  static uint32_t CompletionsOf(const DevicePort& port, QueueDepths depths);
  virtual ~QueuePair() = default;
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  uint32_t number() const { return pair_->qp_num; }
  // In messages.
  QueueDepths depths() const { return depths_; }

  // Over InfiniBand and RoCE: without waiting for the peer.
  absl::Status Connect(const PeerPath& path, uint32_t receive_psn, uint32_t send_psn);

  // Posts `count` receives, of a message each; each completes with `id`.
  virtual absl::Status PostReceives(uint32_t count, uint64_t id) = 0;
  // Its completion, where one is asked for (`signaled`), says that the peer's NIC has the message
  // and everything before it.
  virtual absl::Status Send(const Message& message, uint64_t id, bool signaled) = 0;
  // Tells the peer's process nothing, but completes as a signaled message does.
  virtual absl::Status Probe(uint64_t id, uint64_t remote_address, uint32_t remote_key) = 0;
  // The value of the message that completed a receive, each once and in their order.
  // InvalidArgument when it is no message.
  virtual absl::StatusOr<uint32_t> Take(const ibv_wc& completion) = 0;
  // For how long the NIC may say nothing while it waits for the peer's, and the port is well.
  virtual absl::Duration patience() const = 0;

 protected:
  // `access` as of ibv_access_flags. A message takes up to `requests_per_send` work requests.
  QueuePair(const DevicePort& port, std::shared_ptr<CompletionQueue> completions,
            QueueDepths depths, int access, uint32_t requests_per_send)
      : port_(port),
        completions_(std::move(completions)),
        depths_(depths),
        access_(access),
        requests_per_send_(requests_per_send) {}

  const DevicePort& port() const { return port_; }
  // Bytes that a send may carry inside its work request; anything else is read later.
  uint32_t max_inline() const { return max_inline_; }

  // Creates and initializes it.
  absl::Status CreatePair();
  void DestroyPair() { pair_.reset(); }
  // What a message brings, as the list of a work request that writes it; its flags go there too.
  struct Write {
    std::array<ibv_sge, 2> pieces;
    int count = 0;
    unsigned flags = 0;  // inline, where it fits
  };
  Write WriteOf(const Message& message) const;
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
