// SPDX-License-Identifier: Apache-2.0
//
// Accepting side of an iWARP connection. Callers must send the token of its connection information;
// others are rejected and counted.
//
// It sends nothing before the peer has: MPA, which carries iWARP over TCP, allows the accepting
// side to send only after the first message of the other.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_CM_ACCEPTOR_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_CM_ACCEPTOR_H_

#include <memory>
#include <utility>

#include "runtime/transport/link.h"
#include "runtime/transport/verbs/cm_listener.h"
#include "runtime/transport/verbs/connection.h"

namespace railhead::transport::verbs {

class CmAcceptor final : public Connection {
 public:
  // Counts rejected callers in `stats`, which must outlive it.
  CmAcceptor(CmListener listener, LinkStats& stats)
      : listener_(std::move(listener)), stats_(stats) {}
  ~CmAcceptor() override;

  absl::Status Begin(std::shared_ptr<QueuePair> pair) override {
    pair_ = std::move(pair);
    return absl::OkStatus();
  }
  absl::StatusOr<bool> Advance() override;
  bool speaks_first() const override { return false; }
  // Stops listening.
  void Settle() override { listener_.id.reset(); }
  int event_fd() const override { return listener_.events->fd(); }

 private:
  absl::Status OnCall(CmEvent event);

  CmListener listener_;
  LinkStats& stats_;
  std::shared_ptr<QueuePair> pair_;
  std::shared_ptr<CmHandshake> accepted_;
  bool up_ = false;
};

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_CM_ACCEPTOR_H_
