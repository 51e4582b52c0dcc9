// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/verbs/completion_queue.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"

namespace railhead::transport::verbs {

absl::StatusOr<std::shared_ptr<CompletionQueue>> CompletionQueue::Create(const DevicePort& port,
                                                                         uint32_t entries) {
  const VerbsApi* const api = &port.api();
  errno = 0;
  ibv_comp_channel* const channel = api->CreateCompChannel(port.context());
  if (channel == nullptr) return VerbsError(port.name(), "create a completion channel", errno);
  Owned<ibv_comp_channel> owned(
      channel, [api](ibv_comp_channel* c) { static_cast<void>(api->DestroyCompChannel(c)); });
  if (absl::Status made = MakeNonBlocking(port.name(), channel->fd); !made.ok()) return made;
  errno = 0;
  ibv_cq* const queue = api->CreateCq(port.context(), static_cast<int>(entries), channel);
  if (queue == nullptr) {
    return VerbsError(port.name(),
                      absl::StrCat("create a completion queue of ", entries, " entries"), errno);
  }
  return std::shared_ptr<CompletionQueue>(new CompletionQueue(
      port, std::move(owned),
      Owned<ibv_cq>(queue, [api](ibv_cq* q) { static_cast<void>(api->DestroyCq(q)); })));
}

CompletionQueue::CompletionQueue(const DevicePort& port, Owned<ibv_comp_channel> channel,
                                 Owned<ibv_cq> queue)
    : port_(port), channel_(std::move(channel)), queue_(std::move(queue)) {}

absl::Status CompletionQueue::Drain(
    absl::FunctionRef<absl::Status(const ibv_wc& completion)> take) {
  std::array<ibv_wc, 16> completions;
  int count = 0;
  do {
    count = ibv_poll_cq(queue_.get(), static_cast<int>(completions.size()), completions.data());
    if (count < 0) {
      return absl::InternalError(absl::StrCat(
          port_.name(), ": cannot poll the completion queue (error ", count,
          "); it has overflowed or the device has failed: see the kernel's log on the node"));
    }
    may_have_stirred_ = may_have_stirred_ || count > 0;
    for (int i = 0; i < count; ++i) {
      if (absl::Status taken = take(completions[static_cast<size_t>(i)]); !taken.ok()) return taken;
    }
  } while (static_cast<size_t>(count) == completions.size());
  return absl::OkStatus();
}

absl::Status CompletionQueue::Arm(bool solicited_only) {
  const bool enough = armed_ && (solicited_only || !solicited_only_);
  if (enough && !may_have_stirred_) return absl::OkStatus();
  if (may_have_stirred_) {
    if (absl::Status taken = TakeEvent(); !taken.ok()) return taken;
  }
  if (const int error = ibv_req_notify_cq(queue_.get(), solicited_only ? 1 : 0); error != 0) {
    return VerbsError(port_.name(), "ask for completion events", error);
  }
  armed_ = true;
  solicited_only_ = solicited_only;
  may_have_stirred_ = false;
  return absl::OkStatus();
}

absl::Status CompletionQueue::TakeEvent() {
  ibv_cq* queue = nullptr;
  void* cookie = nullptr;
  if (port_.api().GetCqEvent(channel_.get(), &queue, &cookie) == 0) {
    port_.api().AckCqEvents(queue_.get(), 1);
    return absl::OkStatus();
  }
  const int error = errno;
  if (error == EAGAIN || error == EWOULDBLOCK || error == EINTR) return absl::OkStatus();
  return VerbsError(port_.name(), "read completion events", error);
}

}  // namespace railhead::transport::verbs
