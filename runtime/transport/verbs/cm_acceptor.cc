// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/verbs/cm_acceptor.h"

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

namespace railhead::transport::verbs {

absl::Status CmAcceptor::Begin(std::shared_ptr<QueuePair> pair, uint32_t /*heard*/) {
  HangUp();
  pair_ = std::move(pair);
  return absl::OkStatus();
}

void CmAcceptor::HangUp() {
  if (accepted_ != nullptr && !up_) EndAside(std::move(accepted_));
  accepted_.reset();
  pair_.reset();
  up_ = false;
}

Connection::State CmAcceptor::Fail(absl::string_view why) {
  trouble_ = std::string(why);
  return State::kFailed;
}

void CmAcceptor::OnCall(CmEvent event) {
  const CmToken& token = listener_.address.token;
  if (event.data.size() == token.size() &&
      std::memcmp(event.data.data(), token.data(), token.size()) == 0) {
    caller_ = std::move(event.caller);
    return;
  }
  static_cast<void>(listener_.events->port()->cm()->Reject(event.caller.get()));
  stats_.strangers.fetch_add(1, std::memory_order_relaxed);
}

absl::StatusOr<Connection::State> CmAcceptor::Advance() {
  bool ended = false;
  while (std::optional<CmEvent> event = listener_.events->Next()) {
    if (event->type == RDMA_CM_EVENT_CONNECT_REQUEST) {
      OnCall(*std::move(event));
    } else if (accepted_ != nullptr && event->id == accepted_->id.get()) {
      up_ = event->type == RDMA_CM_EVENT_ESTABLISHED;
      ended = !up_;
      if (ended) trouble_ = std::string(CmEventName(event->type));
    }
  }
  if (accepted_ != nullptr && caller_ != nullptr) return Fail("the peer has called again");
  if (ended) return State::kFailed;
  if (caller_ != nullptr) {
    accepted_ = std::make_shared<CmHandshake>();
    accepted_->events = listener_.events;
    accepted_->pair = pair_;
    accepted_->id = std::move(caller_);
    rdma_conn_param parameters = CmParameters(*listener_.events->port(), pair_->number(), "");
    if (listener_.events->port()->cm()->Accept(accepted_->id.get(), &parameters) != 0) {
      // Who called has given up meanwhile.
      return Fail(std::strerror(errno));
    }
  }
  return up_ ? State::kUp : State::kUnderway;
}

void CmAcceptor::Settle() {
  listener_.id.reset();
  caller_.reset();
}

}  // namespace railhead::transport::verbs
