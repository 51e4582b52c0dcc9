// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_TRANSPORT_DOOR_DOOR_H_
#define RAILHEAD_RUNTIME_TRANSPORT_DOOR_DOOR_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/net/address.h"
#include "runtime/net/fd.h"
#include "runtime/transport/door/hall.h"

namespace railhead::transport {

// Where one peer's connections come from: the first one, and others after a connection was lost.
// Both sides have a hall, and each proves that it knows the other's random token; the side with the
// smaller token dials, and the other waits in its hall. Nothing here blocks.
class Door {
 public:
  // `peer` is what errors call the other side.
  static absl::StatusOr<std::unique_ptr<Door>> Open(std::shared_ptr<Hall> hall,
                                                    absl::string_view peer);

  // What the peer's SetPeer needs; untrusted there.
  std::string Address() const { return hall_->Address(); }
  absl::Status SetPeer(absl::string_view address);

  // Whether this side dials, once the peer is set. Who does not may be called at any time.
  bool dials() const { return hall_->own().token < remote_.token; }

  // Whether the peer stands in the hall.
  bool called() const { return hall_->Has(remote_.token) && !dials(); }

  // For a side that does not dial: asks the one that does for another connection, where that one
  // may not have noticed that the last was lost. To be called again and again.
  void Knock(absl::Time now);
  // Whether the peer has given up the connection that there is: it has come anew, and Advance will
  // return that connection; or it has knocked since the last call.
  bool PeerLeft(absl::Time now);

  // Works at a connection. Returns one that both sides have greeted on, or an invalid descriptor:
  // not yet. An error is that of one attempt; the next call that comes a little later makes
  // another.
  absl::StatusOr<net::Fd> Advance(absl::Time now);

  // Readable when Advance may have something to do. Attempts end and begin with time, too.
  int event_fd() const { return dials() ? epoll_.get() : hall_->event_fd(); }
  // The part of it that is not the hall's, which others watch anyway.
  int dialing_fd() const { return epoll_.get(); }

  // Strangers in the hall that no other door has counted.
  uint64_t strangers() {
    strangers_ += hall_->TakeStrangers();
    return strangers_;
  }
  // "10.0.0.1:4000 - 10.0.0.2:4000".
  std::string Name() const;

 private:
  Door(std::shared_ptr<Hall> hall, net::Fd epoll, std::string peer);

  // Dials, and says who it is.
  absl::Status Call(absl::Time now);
  absl::StatusOr<net::Fd> Dial(absl::Time now);
  absl::StatusOr<net::Fd> Greet();
  absl::StatusOr<net::Fd> Await(absl::Time now);
  std::string Mine() const;  // this side's greeting
  absl::Status Watch(int operation, uint32_t events);

  std::shared_ptr<Hall> hall_;
  net::Fd epoll_;  // for what is dialed, be it only to knock
  Hall::Place remote_;
  std::string peer_;
  uint64_t strangers_ = 0;
  net::Fd visitor_;  // came while there was a connection

  // One attempt to dial.
  net::Fd dialed_;
  bool greeted_ = false;
  std::string answer_;
  absl::Time give_up_;
  absl::Time next_attempt_ = absl::InfinitePast();
};

}  // namespace railhead::transport

#endif  // RAILHEAD_RUNTIME_TRANSPORT_DOOR_DOOR_H_
