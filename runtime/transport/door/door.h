// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_TRANSPORT_DOOR_DOOR_H_
#define RAILHEAD_RUNTIME_TRANSPORT_DOOR_DOOR_H_

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
#include "runtime/transport/door/hall.h"
#include "runtime/transport/door/rail_handshake.h"

namespace railhead::transport {

// A connection on which both sides have proven who they are.
struct Line {
  net::Fd fd;
  LineKeys keys;

  bool valid() const { return fd.valid(); }
};

// Where one peer's connections come from: the first one, and others after a connection was lost.
// Both sides have a hall; the side with the smaller token dials, and the other waits in its hall.
// Both prove that they have the job's key, and that they are at it now (rail_handshake.h). Nothing
// here blocks.
//
//   the side that dials:  connects, greets      hears the answer, confirms: connected
//   the side that waits:           answers in its hall          hears that: connected
//
// So a side that is connected knows that the other is, or will be without its help.
class Door {
 public:
  // `peer_hall` tells the address of the peer's, which is not trusted: what is wrong is an error
  // here, or of Advance where it is not known yet. `peer` is what errors call it.
  static absl::StatusOr<std::unique_ptr<Door>> Open(std::shared_ptr<Hall> hall, Locator peer_hall,
                                                    absl::string_view peer);

  // Whether this side dials. Who does not may be called at any time.
  bool dials() const { return remote_.has_value() && hall_->own().token < remote_->token; }

  // Whether the peer stands in the hall.
  bool called() const { return remote_.has_value() && hall_->Has(remote_->token) && !dials(); }

  // For a side that does not dial: asks the one that does for another connection, where that one
  // may not have noticed that the last was lost. To be called again and again.
  void Knock(absl::Time now);
  // There is news that lets an attempt be made now.
  void Hurry(absl::Time now) { next_attempt_ = now; }
  // Whether the peer has given up the connection that there is: it stands in the hall anew, or has
  // knocked since the last call.
  bool PeerLeft(absl::Time now);

  // Works at a connection. Returns one, or an invalid one: not yet. An error is that of one
  // attempt; the next call that comes a little later makes another.
  absl::StatusOr<Line> Advance(absl::Time now);

  // Readable when Advance may have something to do, besides the hall's. Attempts end and begin with
  // time, too.
  int event_fd() const { return epoll_.get(); }

  // Strangers in the hall that no other door has counted.
  uint64_t strangers() {
    strangers_ += hall_->TakeStrangers();
    return strangers_;
  }
  // "10.0.0.1:4000 - 10.0.0.2:4000".
  std::string Name() const;

 private:
  Door(std::shared_ptr<Hall> hall, Locator locate, net::Fd epoll, std::string peer);

  // Where the peer is, if that can be known now.
  absl::Status Locate();

  // Dials, and says who it is.
  absl::Status Call(absl::Time now);
  absl::StatusOr<Line> Dial(absl::Time now);
  absl::StatusOr<Line> Await(absl::Time now);
  // Begins the handshake with one that has come.
  absl::Status AnswerTo(Hall::Caller caller, absl::Time now);
  // The line, once the peer has proven who it is; an invalid one before.
  absl::StatusOr<Line> Hear();
  // Begins an attempt on a line, and ends one.
  absl::Status Use(net::Fd line, uint32_t events, absl::Time give_up);
  absl::Status GiveUp(const absl::Status& why);

  std::shared_ptr<Hall> hall_;
  Locator locate_;
  std::optional<Hall::Place> remote_;
  net::Fd epoll_;  // for the line
  std::string peer_;
  uint64_t strangers_ = 0;

  // One attempt: what is dialed, be it only to knock, or the one in the hall that was answered.
  net::Fd line_;
  std::optional<Hall::Permit> permit_;      // to dial
  std::optional<RailHandshake> handshake_;  // once this side has said something
  bool answered_ = false;                   // and that was an Answer
  std::string heard_;
  absl::Time give_up_;
  uint64_t attempts_ = 0;
  absl::Time next_attempt_ = absl::InfinitePast();
};

// How long to wait before the next attempt: different for each attempt and each `who`, so that
// ranks that lost the same switch do not all dial in the same moment.
absl::Duration PauseBeforeAttempt(absl::string_view who, uint64_t attempt);

}  // namespace railhead::transport

#endif  // RAILHEAD_RUNTIME_TRANSPORT_DOOR_DOOR_H_
