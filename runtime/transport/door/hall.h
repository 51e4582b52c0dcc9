// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_TRANSPORT_DOOR_HALL_H_
#define RAILHEAD_RUNTIME_TRANSPORT_DOOR_HALL_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/net/address.h"
#include "runtime/net/fd.h"
#include "runtime/transport/link.h"

namespace railhead::transport {

// Where a rail of one rank listens, for all its peers. Whoever comes says with a random token which
// rank it is, and with this one's token that it was told of this place; then it waits here until
// its door (door.h) takes it, be it that nobody expects that rank yet. Strangers are turned away
// and counted. Used by one thread at a time; nothing here blocks.
class Hall final : public WakeSource {
 public:
  // What a rank must know of another's hall.
  struct Place {
    net::IpAddress ip;
    uint16_t port = 0;
    std::string token;
  };

  // Listens on `local`. At most so many may wait at once besides `peers`.
  static absl::StatusOr<std::shared_ptr<Hall>> Open(const net::IpAddress& local, size_t peers);

  // What ParsePlace needs; untrusted there.
  std::string Address() const;
  static absl::StatusOr<Place> ParsePlace(absl::string_view address);
  const Place& own() const { return own_; }

  // Stirs when somebody has come.
  int event_fd() const override { return epoll_.get(); }
  void Answer(absl::Time now) override { Admit(now).IgnoreError(); }

  // Lets in who has come, and hears what they say.
  absl::Status Admit(absl::Time now);
  // The same for those who have nobody to wait for, and ask all the time: now and then.
  void LookRound(absl::Time now);
  // The latest connection of the rank with this token, or an invalid descriptor: whoever dials
  // again has given up what it dialed before.
  net::Fd Take(absl::string_view token);
  bool Has(absl::string_view token) const;
  // The tokens of all that stand here.
  std::vector<std::string> Tokens() const;
  // How many strangers there were since the last call.
  uint64_t TakeStrangers() { return std::exchange(strangers_, 0); }

 private:
  struct Visitor {
    net::Fd fd;
    std::string greeting;
    absl::Time patience;
  };

  Hall(net::Fd listener, net::Fd epoll, Place own, size_t most);

  bool Hear(Visitor& visitor, absl::Time now);
  absl::Status Watch(const net::Fd& fd);

  net::Fd listener_;
  net::Fd epoll_;
  Place own_;
  size_t most_;
  uint64_t strangers_ = 0;
  absl::Time next_look_ = absl::InfinitePast();
  absl::Time closed_until_ = absl::InfiniteFuture();  // the listener is not watched until then
  std::list<Visitor> visitors_;
};

// What each side says first: whose connection it is, and for whom.
std::string Greeting(absl::string_view from_token, absl::string_view to_token);
size_t GreetingSize();

}  // namespace railhead::transport

#endif  // RAILHEAD_RUNTIME_TRANSPORT_DOOR_HALL_H_
