// SPDX-License-Identifier: Apache-2.0
//
// The side of a connection over iWARP that dials: the one whose token is smaller. It dials until
// the peer accepts, each time with a fresh queue pair.
//
//   resting -> resolving address -> resolving route -> dialing -> up
//      ^            |                    |                |
//      +------------+--------------------+----------------+  failed: a pause
//
// Two calls of the connection manager may take as long as TCP is patient with a peer that does not
// answer, minutes with some drivers: the one that dials, and the one that destroys an id that
// dials. Both are made by helper threads, which own what they need and may outlive this. A
// connection that is up belongs to nobody else.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_CM_DIALER_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_CM_DIALER_H_

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "runtime/transport/verbs/cm_listener.h"
#include "runtime/transport/verbs/connection.h"

namespace railhead::transport::verbs {

class CmDialer final : public Connection {
 public:
  // Dials `peer` from the address `from`, with the events of a listener that is gone.
  CmDialer(std::shared_ptr<CmEvents> events, const net::IpAddress& from, const CmAddress& peer);
  ~CmDialer() override;

  absl::Status Begin(std::shared_ptr<QueuePair> pair, uint32_t heard) override;
  absl::StatusOr<State> Advance() override;
  bool speaks_first() const override { return true; }
  bool begins_anew() const override { return true; }
  bool MayFailWith(ibv_wc_status /*status*/) const override { return true; }
  // siw may overlook what comes while it accepts, until more comes.
  absl::Duration reminder() const override { return absl::Milliseconds(200); }
  int event_fd() const override { return events_->fd(); }
  std::string trouble() const override { return trouble_; }

 private:
  struct Call;  // the one that may take long
  enum class Stage { kResting, kAddress, kRoute, kDialing, kUp };

  absl::Status Dial();
  absl::Status On(const CmEvent& event);
  State Fail(absl::string_view why);
  void GiveUp();

  const std::shared_ptr<CmEvents> events_;
  const net::IpAddress from_;
  const CmAddress peer_;
  Stage stage_ = Stage::kResting;
  std::shared_ptr<QueuePair> pair_;
  std::shared_ptr<CmHandshake> handshake_;  // from the first stage on
  std::shared_ptr<Call> call_;              // while dialing
  bool established_ = false;
  absl::Time next_ = absl::InfinitePast();
  std::string trouble_;
};

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_CM_DIALER_H_
