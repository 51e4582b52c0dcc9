// SPDX-License-Identifier: Apache-2.0
//
// A completion queue with its event channel, for all queue pairs of one connection: who polls or
// sleeps has one place to look at, however many they are.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_COMPLETION_QUEUE_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_COMPLETION_QUEUE_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/transport/verbs/device_port.h"

namespace railhead::transport::verbs {

// Used by one thread at a time. Queue pairs keep the one that they complete into.
class CompletionQueue {
 public:
  // `port` must outlive it. `entries`: so many completions may be in it.
  static absl::StatusOr<std::shared_ptr<CompletionQueue>> Create(const DevicePort& port,
                                                                 uint32_t entries);
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  ibv_cq* get() const { return queue_.get(); }

  // Hands over all completions that are there, until one is refused.
  absl::Status Drain(absl::FunctionRef<absl::Status(const ibv_wc& completion)> take);

  // Readable when a completion arrived after Arm; `solicited_only`: one of a message that the peer
  // sent so (IBV_SEND_SOLICITED), and perhaps of a failure. What is armed stays so until then, and
  // costs nothing to arm again.
  int event_fd() const { return channel_->fd; }
  absl::Status Arm(bool solicited_only);
  // It was readable. The next Arm takes what made it so.
  void Answer() { may_have_stirred_ = true; }

 private:
  CompletionQueue(const DevicePort& port, Owned<ibv_comp_channel> channel, Owned<ibv_cq> queue);

  absl::Status TakeEvent();

  const DevicePort& port_;
  Owned<ibv_comp_channel> channel_;
  Owned<ibv_cq> queue_;
  bool armed_ = false;
  bool solicited_only_ = false;
  bool may_have_stirred_ = false;  // since it was armed: there may be an event
};

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_COMPLETION_QUEUE_H_
