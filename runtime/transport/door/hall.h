// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_TRANSPORT_DOOR_HALL_H_
#define RAILHEAD_RUNTIME_TRANSPORT_DOOR_HALL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/net/address.h"
#include "runtime/net/fd.h"
#include "runtime/transport/door/rail_handshake.h"
#include "runtime/transport/link.h"

namespace railhead::transport {

// Where a rail of one rank listens, for all its peers. Whoever comes says which rank it is and
// proves that it has the job's key (rail_handshake.h); then it waits here until its door (door.h)
// takes it, be it that nobody expects that rank yet. Strangers, and whoever repeats what a rank has
// said before, are turned away and counted. Used by one thread at a time; nothing here blocks.
class Hall final : public WakeSource {
 public:
  // What a rank must know of another's hall.
  struct Place {
    net::IpAddress ip;
    uint16_t port = 0;
    std::string token;
  };

  // Listens on `local`. At most so many may wait at once besides `peers`. The token says that this
  // is the hall of `rank`; all halls of the rail have the same key.
  static absl::StatusOr<std::shared_ptr<Hall>> Open(const net::IpAddress& local, size_t peers,
                                                    uint32_t rank = 0, RailKey key = {});

  // What ParsePlace needs; untrusted there.
  std::string Address() const;
  static absl::StatusOr<Place> ParsePlace(absl::string_view address);
  const Place& own() const { return own_; }
  const RailKey& key() const { return key_; }

  // Stirs when somebody has come.
  int event_fd() const override { return epoll_.get(); }
  void Answer(absl::Time now) override { Admit(now).IgnoreError(); }

  // Lets in who has come, and hears what they say.
  absl::Status Admit(absl::Time now);
  // The same for those who have nobody to wait for, and ask all the time: now and then.
  void LookRound(absl::Time now);
  // The latest connection of the rank with this token, and the Hello that came with it, or an
  // invalid descriptor: whoever dials again has given up what it dialed before.
  struct Caller {
    net::Fd fd;
    std::string hello;
  };
  Caller Take(absl::string_view token);
  bool Has(absl::string_view token) const;
  // The ranks that stand here.
  std::vector<uint32_t> Callers() const;

  // What to say to the hall with this token. Each is of use once.
  absl::StatusOr<std::string> NewHello(absl::string_view to);

  // May one more be dialed? Who dials all at once gets no answer from anybody in time, where all
  // others do so, too. Holds until the result is gone.
  class Permit {
   public:
    explicit Permit(std::shared_ptr<Hall> hall) : hall_(std::move(hall)) { ++hall_->dialing_; }
    ~Permit() { --hall_->dialing_; }
    Permit(const Permit&) = delete;
    Permit& operator=(const Permit&) = delete;

   private:
    std::shared_ptr<Hall> hall_;
  };
  bool MayDial() const { return dialing_ < kMostDialing; }
  // How many strangers there were since the last call.
  uint64_t TakeStrangers() { return std::exchange(strangers_, 0); }

 private:
  struct Visitor {
    net::Fd fd;
    std::string said;
    absl::Time patience;
    std::string from = "";  // the token of the rank that it is; "" while that is not proven
  };

  Hall(net::Fd listener, net::Fd epoll, Place own, RailKey key, size_t most);

  bool Hear(Visitor& visitor, absl::Time now);
  void Believe(Visitor& visitor);
  absl::Status Watch(const net::Fd& fd);

  net::Fd listener_;
  net::Fd epoll_;
  Place own_;
  RailKey key_;
  static constexpr int kMostDialing = 16;

  size_t most_;
  int dialing_ = 0;
  uint64_t strangers_ = 0;
  uint64_t hellos_ = 0;                    // that this side has said
  std::map<std::string, uint64_t> heard_;  // by token: the number of the last one that came
  absl::Time next_look_ = absl::InfinitePast();
  absl::Time closed_until_ = absl::InfiniteFuture();  // the listener is not watched until then
  std::list<Visitor> visitors_;
};

// Where a peer's hall is, as that says itself; nothing while it is not known.
class Locator {
 public:
  // Known from the beginning.
  // NOLINTNEXTLINE(google-explicit-constructor,misc-explicit-constructor)
  Locator(absl::string_view address) : find_([known = std::string(address)] { return known; }) {}
  // NOLINTNEXTLINE(google-explicit-constructor,misc-explicit-constructor)
  Locator(const std::string& address) : Locator(absl::string_view(address)) {}
  explicit Locator(std::function<std::optional<std::string>()> find) : find_(std::move(find)) {}

  std::optional<std::string> operator()() const { return find_(); }

 private:
  std::function<std::optional<std::string>()> find_;
};

}  // namespace railhead::transport

#endif  // RAILHEAD_RUNTIME_TRANSPORT_DOOR_HALL_H_
