// SPDX-License-Identifier: Apache-2.0
//
// One reliable connected queue pair with its completion queue and event channel.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_QUEUE_PAIR_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_QUEUE_PAIR_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
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

// Life: RESET -> Initialize -> (post receives) -> Connect -> send and receive; Reset from anywhere.
// Used by one thread at a time. `port` must outlive it.
class QueuePair {
 public:
  static absl::StatusOr<std::unique_ptr<QueuePair>> Create(const DevicePort& port,
                                                           QueueDepths depths);

  uint32_t number() const { return pair_->qp_num; }
  QueueDepths depths() const { return depths_; }
  // Bytes that a send may carry inside its work request.
  uint32_t max_inline() const { return max_inline_; }

  absl::Status Initialize();
  absl::Status Connect(const PeerPath& path, uint32_t receive_psn, uint32_t send_psn);

  // Stops the queue pair for good: from the return on, nothing more arrives or leaves.
  absl::Status Stop();
  // After Stop. Work requests that have not completed are forgotten; completions of theirs may
  // still turn up.
  absl::Status Reset();

  // Posts `count` receives without buffers (a write with immediate needs a receive to be announced
  // by, and no memory); each completes with `id`.
  absl::Status PostReceives(uint32_t count, uint64_t id);
  absl::Status PostSend(ibv_send_wr& request);

  // Hands over all completions that are there, until one is refused.
  absl::Status Drain(absl::FunctionRef<absl::Status(const ibv_wc& completion)> take);

  // Readable when a completion arrived after Arm. Arm also clears what made it readable before.
  int event_fd() const { return channel_->fd; }
  absl::Status Arm();

 private:
  explicit QueuePair(const DevicePort& port) : port_(port) {}
  absl::Status CreateObjects(QueueDepths depths);
  absl::Status Modify(ibv_qp_attr& attributes, int mask, absl::string_view what);

  const DevicePort& port_;
  Owned<ibv_comp_channel> channel_;
  Owned<ibv_cq> completions_;
  Owned<ibv_qp> pair_;
  QueueDepths depths_;
  uint32_t max_inline_ = 0;
};

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_QUEUE_PAIR_H_
