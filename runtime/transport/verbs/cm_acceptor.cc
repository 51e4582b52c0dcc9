// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/verbs/cm_acceptor.h"

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

namespace railhead::transport::verbs {

CmAcceptor::~CmAcceptor() {
  if (accepted_ != nullptr && !up_) EndAside(std::move(accepted_));
}

absl::Status CmAcceptor::OnCall(CmEvent event) {
  const CmApi& api = *listener_.events->port()->cm();
  const CmToken& token = listener_.address.token;
  if (accepted_ != nullptr || event.data.size() != token.size() ||
      std::memcmp(event.data.data(), token.data(), token.size()) != 0) {
    static_cast<void>(api.Reject(event.caller.get()));
    stats_.strangers.fetch_add(1, std::memory_order_relaxed);
    return absl::OkStatus();
  }
  accepted_ = std::make_shared<CmHandshake>();
  accepted_->events = listener_.events;
  accepted_->pair = pair_;
  accepted_->id = std::move(event.caller);
  rdma_conn_param parameters = CmParameters(*listener_.events->port(), pair_->number(), "");
  if (api.Accept(accepted_->id.get(), &parameters) == 0) return absl::OkStatus();
  // The client has given up since then.
  return absl::UnavailableError(std::strerror(errno));
}

absl::StatusOr<bool> CmAcceptor::Advance() {
  while (std::optional<CmEvent> event = listener_.events->Next()) {
    if (event->type == RDMA_CM_EVENT_CONNECT_REQUEST) {
      if (absl::Status called = OnCall(*std::move(event)); !called.ok()) return called;
    } else if (accepted_ != nullptr && event->id == accepted_->id.get()) {
      up_ = event->type == RDMA_CM_EVENT_ESTABLISHED;
      if (!up_) return absl::UnavailableError(CmEventName(event->type));
    }
  }
  return up_;
}

}  // namespace railhead::transport::verbs
