// SPDX-License-Identifier: Apache-2.0
//
// Provides one peer's authenticated connections over a rail: the first, and further ones after a
// loss. Used by RecoveringLink.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_CONNECT_RECONNECTOR_H_
#define RAILHEAD_RUNTIME_TRANSPORT_CONNECT_RECONNECTOR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/net/address.h"
#include "runtime/net/fd.h"
#include "runtime/transport/connect/acceptor.h"
#include "runtime/transport/connect/rail_handshake.h"
#include "runtime/transport/link_waits.h"

namespace railhead::transport {

// An authenticated connection: both sides have proven their identity.
struct Line {
  net::Fd fd;
  LineKeys keys;

  bool valid() const { return fd.valid(); }
};

// The side with the smaller token dials; the other accepts in its Acceptor. Both prove that they
// have the job's key, in this handshake (rail_handshake.h). No call blocks.
//
//   dialing side:    connects, sends Hello   receives Answer, confirms: connected
//   accepting side:            sends Answer from its acceptor         receives that: connected
//
// So a connected side knows that the other is connected, or will be without its help.
//
// A peer's rail that has no address yet is not dialed; the peer sends its address over another rail
// (PeerMovedTo).
class Reconnector {
 public:
  // `peer_acceptor` returns the peer's address, which is untrusted: a bad one is an error here, or
  // of Advance if it is not known yet. `peer` names the peer in errors.
  static absl::StatusOr<std::unique_ptr<Reconnector>> Open(std::shared_ptr<Acceptor> acceptor,
                                                           Locator peer_acceptor,
                                                           absl::string_view peer);

  // Returns true if this side dials. The other side must accept at any time.
  bool dials() const { return remote_.has_value() && acceptor_->own().token < remote_->token; }

  // Returns true if a connection of the peer waits in the acceptor.
  bool called() const { return remote_.has_value() && acceptor_->Has(remote_->token) && !dials(); }

  // For the accepting side: requests a new connection from the dialing side, which may not have
  // noticed that the last was lost. Call it repeatedly. An error ends one attempt, as of Advance.
  absl::Status Knock(absl::Time now);
  // Allows an attempt now, after news.
  void Hurry(absl::Time now) { next_attempt_ = now; }
  // Returns true if the peer has given up the current connection: it has a new one in the acceptor,
  // or has sent a reconnect request since the last call.
  bool PeerLeft(absl::Time now);

  // Advances the connection setup. Returns a connection, or an invalid one if it is not ready. An
  // error ends one attempt only; a later call starts the next.
  absl::StatusOr<Line> Advance(absl::Time now);

  // The peer listens at another address from now on. It is untrusted: a bad one is ignored.
  void PeerMovedTo(absl::string_view address);
  const Acceptor& acceptor() const { return *acceptor_; }

  // What Advance waits for, besides the acceptor's descriptors. Attempts also start and time out
  // without it. The link adds what its connections wait for.
  LinkWaits& waits() { return waits_; }

  // Rejected connections in the acceptor that no other caller has counted.
  uint64_t strangers() {
    strangers_ += acceptor_->TakeStrangers();
    return strangers_;
  }
  // "10.0.0.1:4000 - 10.0.0.2:4000".
  std::string Name() const;

 private:
  Reconnector(std::shared_ptr<Acceptor> acceptor, Locator locate, std::string peer);

  // Resolves the peer's address, if it is known.
  absl::Status Locate();

  // Dials and sends Hello.
  absl::Status Call(absl::Time now);
  absl::StatusOr<Line> Dial(absl::Time now);
  absl::StatusOr<Line> Await(absl::Time now);
  // Starts the handshake with an accepted connection.
  absl::Status AnswerTo(RailListener::Caller caller, absl::Time now);
  // Returns the connection after the peer has proven its identity; an invalid one before.
  absl::StatusOr<Line> Hear();
  // Starts an attempt on a connection; Close and GiveUp end it.
  absl::Status Use(net::Fd line, uint32_t events, absl::Time give_up);
  void Close();
  absl::Status GiveUp(const absl::Status& why);
  static absl::Status NoAddress();
  // Why the present attempt has got no answer.
  absl::Status NoAnswer() const;

  std::shared_ptr<Acceptor> acceptor_;
  Locator locate_;
  std::optional<Acceptor::Place> remote_;
  LinkWaits waits_;
  std::string peer_;
  uint64_t strangers_ = 0;

  // One attempt: the dialed connection, even if only for a reconnect request, or the accepted one.
  net::Fd line_;
  std::optional<Acceptor::Permit> permit_;  // to dial
  std::optional<RailHandshake> handshake_;  // after this side has sent something
  bool answered_ = false;                   // this side has sent an Answer
  std::string heard_;
  absl::Time give_up_;
  absl::Time answer_good_;  // until then, to the Hello that was sent
  uint64_t attempts_ = 0;
  absl::Time next_attempt_ = absl::InfinitePast();
};

// Returns the delay before the next attempt: different for each attempt and each `who`, so that
// ranks that lost the same switch do not all dial at the same time.
absl::Duration PauseBeforeAttempt(absl::string_view who, uint64_t attempt);

}  // namespace railhead::transport

#endif  // RAILHEAD_RUNTIME_TRANSPORT_CONNECT_RECONNECTOR_H_
