// SPDX-License-Identifier: Apache-2.0
//
// The side of a connection over iWARP that is dialed. Who calls must say the token of its offer;
// others are refused and counted. A peer that calls again has given up the call before.
//
//   listening -> accepted -> up         from anywhere, when it ends or the peer calls again: failed
//
// It does not speak before it has heard the peer: MPA, which carries iWARP over TCP, lets the side
// that was called send only after the first message of the other.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_CM_ACCEPTOR_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_CM_ACCEPTOR_H_

#include <memory>
#include <string>

#include "runtime/transport/link.h"
#include "runtime/transport/verbs/cm_listener.h"
#include "runtime/transport/verbs/connection.h"

namespace railhead::transport::verbs {

class CmAcceptor final : public Connection {
 public:
  // Counts strangers in `stats`, which outlives it.
  CmAcceptor(CmListener listener, LinkStats& stats)
      : listener_(std::move(listener)), stats_(stats) {}
  ~CmAcceptor() override { HangUp(); }

  absl::Status Begin(std::shared_ptr<QueuePair> pair, uint32_t heard) override;
  absl::StatusOr<State> Advance() override;
  bool speaks_first() const override { return false; }
  bool begins_anew() const override { return true; }
  bool MayFailWith(ibv_wc_status /*status*/) const override { return true; }
  // Nobody can call any more.
  void Settle() override;
  int event_fd() const override { return listener_.events->fd(); }
  std::string trouble() const override { return trouble_; }

 private:
  void OnCall(CmEvent event);
  State Fail(absl::string_view why);
  void HangUp();

  CmListener listener_;
  LinkStats& stats_;
  std::shared_ptr<QueuePair> pair_;
  CmId caller_;  // not answered yet
  std::shared_ptr<CmHandshake> accepted_;
  bool up_ = false;
  std::string trouble_;
};

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_CM_ACCEPTOR_H_
