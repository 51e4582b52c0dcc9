// SPDX-License-Identifier: Apache-2.0
//
// Dialing side of an iWARP connection: the one with the smaller token.
//
//   resolving address -> resolving route -> dialing -> up
//
// Two calls of the connection manager may block as long as TCP waits for an unresponsive peer,
// minutes with some drivers: connecting, and destroying an id that connects. Both run on helper
// threads, which own what they need and may outlive this object. A connection that is up is owned
// by this object only.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_CM_DIALER_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_CM_DIALER_H_

#include <memory>

#include "absl/time/time.h"
#include "runtime/transport/verbs/cm_listener.h"
#include "runtime/transport/verbs/connection.h"

namespace railhead::transport::verbs {

class CmDialer final : public Connection {
 public:
  // Dials `peer` from address `from`, with the events of a closed listener.
  CmDialer(std::shared_ptr<CmEvents> events, const net::IpAddress& from, const CmAddress& peer);
  ~CmDialer() override;

  absl::Status Begin(std::shared_ptr<QueuePair> pair) override;
  absl::StatusOr<bool> Advance() override;
  bool speaks_first() const override { return true; }
  // siw may miss a message that arrives while it accepts, until another arrives.
  absl::Duration reminder() const override { return absl::Milliseconds(200); }
  int event_fd() const override { return events_->fd(); }

 private:
  struct Call;  // the blocking one
  enum class Stage { kAddress, kRoute, kDialing, kUp };

  absl::Status On(const CmEvent& event);

  const std::shared_ptr<CmEvents> events_;
  const net::IpAddress from_;
  const CmAddress peer_;
  Stage stage_ = Stage::kAddress;
  std::shared_ptr<CmHandshake> handshake_;
  std::shared_ptr<Call> call_;  // while dialing
  bool established_ = false;
};

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_CM_DIALER_H_
