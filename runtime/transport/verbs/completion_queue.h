// SPDX-License-Identifier: Apache-2.0
//
// Completion queue with its event channel, shared by all queue pairs of one connection, so that one
// poll or wait covers all of them.
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

// Use from one thread at a time. Queue pairs share ownership.
class CompletionQueue {
 public:
  // `port` must outlive it. `entries` is its capacity in completions.
  static absl::StatusOr<std::shared_ptr<CompletionQueue>> Create(const DevicePort& port,
                                                                 uint32_t entries);
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  ibv_cq* get() const { return queue_.get(); }

  // Passes all available completions to `take`, until it returns an error.
  absl::Status Drain(absl::FunctionRef<absl::Status(const ibv_wc& completion)> take);

  // Readable when a completion arrived after Arm; with `solicited_only`, only one of a message sent
  // with IBV_SEND_SOLICITED, and possibly of a failure. It stays armed until then; arming again is
  // free.
  int event_fd() const { return channel_->fd; }
  absl::Status Arm(bool solicited_only);
  // Call when it was readable. The next Arm consumes the event.
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
