// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_TRANSPORT_TCP_DOOR_H_
#define RAILHEAD_RUNTIME_TRANSPORT_TCP_DOOR_H_

#include <cstdint>
#include <list>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/net/address.h"
#include "runtime/net/fd.h"

namespace railhead::transport {

// Where one peer's connections come from: the first one, and others after a connection was lost.
// Both sides listen at first and each proves that it knows the other's random token; then the side
// with the smaller token dials, and the other waits for it. Strangers are turned away and counted.
// Nothing here blocks.
class Door {
 public:
  // Listens on `local`; `peer` is what errors call the other side.
  static absl::StatusOr<std::unique_ptr<Door>> Open(const net::IpAddress& local,
                                                    absl::string_view peer);

  // What the peer's SetPeer needs; untrusted there.
  std::string Address() const;
  absl::Status SetPeer(absl::string_view address);

  // Whether this side dials, once the peer is set. Who does not may be called at any time.
  bool dials() const { return own_.token < remote_.token; }

  // Works at a connection. Returns one that both sides have greeted on, or an invalid descriptor:
  // not yet. An error is that of one attempt; the next call that comes a little later makes
  // another.
  absl::StatusOr<net::Fd> Advance(absl::Time now);

  // Readable when Advance may have something to do. Attempts end and begin with time, too.
  int event_fd() const { return epoll_.get(); }

  uint64_t strangers() const { return strangers_; }
  // "10.0.0.1:4000 - 10.0.0.2:4000".
  std::string Name() const;

 private:
  struct Place {
    net::IpAddress ip;
    uint16_t port = 0;
    std::string token;
  };
  struct Visitor {
    net::Fd fd;
    std::string greeting;
    absl::Time patience;
  };

  Door(net::Fd listener, net::Fd epoll, Place own, std::string peer);

  absl::StatusOr<net::Fd> Dial(absl::Time now);
  absl::StatusOr<net::Fd> Greet();
  absl::StatusOr<net::Fd> Await(absl::Time now);
  absl::Status Admit(absl::Time now);
  bool Hear(Visitor& visitor, absl::Time now);
  absl::Status Watch(const net::Fd& fd, uint32_t events);

  net::Fd listener_;
  net::Fd epoll_;
  Place own_;
  Place remote_;
  std::string peer_;
  uint64_t strangers_ = 0;

  // One attempt to dial.
  net::Fd dialed_;
  bool greeted_ = false;
  std::string answer_;
  absl::Time give_up_;
  absl::Time next_attempt_ = absl::InfinitePast();

  std::list<Visitor> visitors_;
};

}  // namespace railhead::transport

#endif  // RAILHEAD_RUNTIME_TRANSPORT_TCP_DOOR_H_
