// SPDX-License-Identifier: Apache-2.0
//
// Acceptor: takes the connections of all peers of a rank on one rail. Used by both transports, with
// one Reconnector per peer.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_CONNECT_ACCEPTOR_H_
#define RAILHEAD_RUNTIME_TRANSPORT_CONNECT_ACCEPTOR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/net/address.h"
#include "runtime/transport/connect/rail_handshake.h"
#include "runtime/transport/connect/rail_listener.h"
#include "runtime/transport/link.h"

namespace railhead::transport {

// A client names its rank and proves that it has the job's key (rail_handshake.h); the connection
// then waits until its Reconnector takes it, even if this rank does not expect it yet. Clients
// without the key, and replays, are rejected and counted. The acceptors of a process share a
// listener. Use from one thread at a time, except where stated; no call blocks.
class Acceptor {
 public:
  // Address of an acceptor, for other ranks.
  struct Place {
    net::IpAddress ip;
    uint16_t port = 0;  // 0: the acceptor has no listener yet; ip is meaningless then
    std::string token;
  };

  // Returns the listener to use now, or why there is none: the rail's interface may have no
  // address, or another one than before.
  using Listen = std::function<absl::StatusOr<std::shared_ptr<RailListener>>()>;

  // `peers`: the number of ranks that may connect. The token identifies the acceptor of `rank`;
  // all acceptors of the rail have the same key. `wake` is signalled when a connection has arrived.
  // If there is no listener yet, the acceptor gets one later (Renew).
  static absl::StatusOr<std::shared_ptr<Acceptor>> Open(Listen listen, size_t peers,
                                                        uint32_t rank = 0, RailKey key = {},
                                                        std::shared_ptr<WakeEvent> wake = nullptr);
  static absl::StatusOr<std::shared_ptr<Acceptor>> Open(std::shared_ptr<RailListener> listener,
                                                        size_t peers, uint32_t rank = 0,
                                                        RailKey key = {},
                                                        std::shared_ptr<WakeEvent> wake = nullptr) {
    return Open([listener = std::move(listener)] { return listener; }, peers, rank, std::move(key),
                std::move(wake));
  }
  // The same with this token of kTokenSize bytes, which both sides know. The peers of the second do
  // not know its address yet: MovedTo has it.
  static std::shared_ptr<Acceptor> OpenAs(std::string token, Listen listen, size_t peers,
                                          RailKey key, std::shared_ptr<WakeEvent> wake = nullptr);
  static std::shared_ptr<Acceptor> OpenUntold(std::string token, Listen listen, size_t peers,
                                              RailKey key,
                                              std::shared_ptr<WakeEvent> wake = nullptr);
  ~Acceptor() {
    if (listener_ != nullptr) listener_->Remove(inbox_);
  }
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // Input of ParsePlace, which does not trust it.
  std::string Address() const;
  static absl::StatusOr<Place> ParsePlace(absl::string_view address);
  const Place& own() const { return own_; }
  // Looks, about once a second, for a listener if there is none, or if it may be another one by
  // now. Call it while a connection is missing. Returns why there is no listener.
  absl::Status Renew(absl::Time now);
  const RailKey& key() const { return inbox_.key; }
  // Returns the present listener's interface; null without a listener, or if connections come and
  // go as the kernel routes them. Thread-safe.
  std::shared_ptr<RailInterface> interface() const;
  // See Open; null without one.
  const std::shared_ptr<WakeEvent>& wake() const { return inbox_.wake; }

  // Accepts connections and reads what they send.
  absl::Status Admit(absl::Time now) {
    return listener_ != nullptr ? listener_->Admit(now) : no_listener_;
  }
  // Does the same, rate-limited, for callers without a descriptor to wait on.
  void LookRound(absl::Time now);
  // As in RailListener.
  RailListener::Caller Take(absl::string_view token) {
    return listener_ != nullptr ? listener_->Take(inbox_, token) : RailListener::Caller();
  }
  bool Has(absl::string_view token) const {
    return listener_ != nullptr && listener_->Has(inbox_, token);
  }
  // Returns the ranks with a waiting connection.
  std::vector<uint32_t> Callers() const;

  // Returns a Hello for the acceptor with this token. Use each once.
  absl::StatusOr<std::string> NewHello(absl::string_view to);

  // Returns Address() if it is another one than when this was opened; "" if it is the same.
  std::string MovedTo() const;

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
  uint64_t TakeStrangers() { return listener_ != nullptr ? listener_->TakeStrangers(inbox_) : 0; }

 private:
  Acceptor(Listen listen, std::string token, size_t peers, RailKey key,
           std::shared_ptr<WakeEvent> wake);

  static constexpr int kMostDialing = 16;

  const Listen listen_;
  std::shared_ptr<RailListener> listener_;  // null: there is none yet
  mutable std::mutex listener_mutex_;       // held by Renew when it replaces the listener
  absl::Status no_listener_;                // why
  Place own_;
  uint16_t told_port_ = 0;  // of the first Address(); 0: none
  net::IpAddress told_ip_;
  RailListener::Inbox inbox_;
  absl::Time next_renewal_ = absl::InfinitePast();
  int dialing_ = 0;
  uint64_t hellos_ = 0;  // sent by this side
  absl::Time next_look_ = absl::InfinitePast();
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
