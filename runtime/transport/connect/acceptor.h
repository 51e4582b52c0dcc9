// SPDX-License-Identifier: Apache-2.0
//
// Acceptor: listens on one rail of a rank for the connections of all its peers. Used by both
// transports, with one Reconnector per peer.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_CONNECT_ACCEPTOR_H_
#define RAILHEAD_RUNTIME_TRANSPORT_CONNECT_ACCEPTOR_H_

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
#include "runtime/transport/connect/rail_handshake.h"
#include "runtime/transport/link.h"

namespace railhead::transport {

// A client names its rank and proves that it has the job's key (rail_handshake.h); the connection
// then waits until its Reconnector takes it, even if this rank does not expect it yet. Clients
// without the key, and replays, are rejected and counted. Use from one thread at a time; no call
// blocks.
class Acceptor final : public WakeSource {
 public:
  // Address of an acceptor, for other ranks.
  struct Place {
    net::IpAddress ip;
    uint16_t port = 0;
    std::string token;
  };

  // Listens on `local`. Besides `peers`, a fixed number of connections may wait. The token
  // identifies the acceptor of `rank`; all acceptors of the rail have the same key.
  static absl::StatusOr<std::shared_ptr<Acceptor>> Open(const net::IpAddress& local, size_t peers,
                                                        uint32_t rank = 0, RailKey key = {});

  // Input of ParsePlace, which does not trust it.
  std::string Address() const;
  static absl::StatusOr<Place> ParsePlace(absl::string_view address);
  const Place& own() const { return own_; }
  const RailKey& key() const { return key_; }

  // Readable when a connection has arrived.
  int event_fd() const override { return epoll_.get(); }
  void Answer(absl::Time now) override { Admit(now).IgnoreError(); }

  // Accepts connections and reads what they send.
  absl::Status Admit(absl::Time now);
  // Does the same, rate-limited, for callers without a descriptor to wait on.
  void LookRound(absl::Time now);
  // Latest connection of the rank with this token, and its Hello, or an invalid descriptor. A newer
  // connection replaces older ones, which the peer has given up.
  struct Caller {
    net::Fd fd;
    std::string hello;
  };
  Caller Take(absl::string_view token);
  bool Has(absl::string_view token) const;
  // Returns the ranks with a waiting connection.
  std::vector<uint32_t> Callers() const;

  // Returns a Hello for the acceptor with this token. Use each once.
  absl::StatusOr<std::string> NewHello(absl::string_view to);

  // Limits concurrent dialing: if all ranks dial all peers at once, none answers in time. Counts
  // until destroyed.
  class Permit {
   public:
    explicit Permit(std::shared_ptr<Acceptor> acceptor) : acceptor_(std::move(acceptor)) {
      ++acceptor_->dialing_;
    }
    ~Permit() { --acceptor_->dialing_; }
    Permit(const Permit&) = delete;
    Permit& operator=(const Permit&) = delete;

   private:
    std::shared_ptr<Acceptor> acceptor_;
  };
  bool MayDial() const { return dialing_ < kMostDialing; }
  // Returns the number of connections rejected since the last call.
  uint64_t TakeStrangers() { return std::exchange(strangers_, 0); }

 private:
  struct Visitor {
    net::Fd fd;
    std::string said;
    absl::Time patience;
    std::string from = "";  // token of the proven rank; "" before
  };

  Acceptor(net::Fd listener, net::Fd epoll, Place own, RailKey key, size_t most);

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
  uint64_t hellos_ = 0;                    // sent by this side
  std::map<std::string, uint64_t> heard_;  // by token: number of the last Hello received
  absl::Time next_look_ = absl::InfinitePast();
  absl::Time closed_until_ = absl::InfiniteFuture();  // the listener is not polled until then
  std::list<Visitor> visitors_;
};

// Returns the self-described address of a peer's acceptor; nullopt while unknown.
class Locator {
 public:
  // Known from the start.
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

#endif  // RAILHEAD_RUNTIME_TRANSPORT_CONNECT_ACCEPTOR_H_
