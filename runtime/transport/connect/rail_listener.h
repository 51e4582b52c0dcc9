// SPDX-License-Identifier: Apache-2.0
//
// RailListener: a listening socket for all communicators of a process that use an address. Used by
// Acceptor.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_CONNECT_RAIL_LISTENER_H_
#define RAILHEAD_RUNTIME_TRANSPORT_CONNECT_RAIL_LISTENER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/net/address.h"
#include "runtime/net/fd.h"
#include "runtime/net/watch_thread.h"
#include "runtime/transport/connect/rail_handshake.h"
#include "runtime/transport/connect/rail_interface.h"
#include "runtime/transport/wake_event.h"

namespace railhead::transport {

// Accepts connections, reads their Hellos (rail_handshake.h), and keeps each for the inbox that its
// Hello names. Rejects and counts those that name none or do not prove the inbox's key, and
// replays. The process's thread (watch_thread.h) does so when a connection arrives, and wakes the
// owner of the inbox. Thread-safe; no call blocks.
class RailListener final : private net::WatchThread::Client {
 public:
  // The connections that wait for an acceptor.
  struct Inbox {
    std::string token;
    RailKey key;
    size_t peers = 0;                 // ranks that may connect
    std::shared_ptr<WakeEvent> wake;  // signalled when one has connected; null: the owner polls

    // The listener's.
    std::atomic<int> waiting{0};
    uint64_t strangers = 0;                      // rejected connections that named this inbox
    std::map<std::string, uint64_t> heard = {};  // by token: number of the last Hello received
  };

  // The interface of `local` may be down. With `interface`, which has the address, connections come
  // and go by that (rail_interface.h).
  static absl::StatusOr<std::shared_ptr<RailListener>> Open(
      const net::IpAddress& local, std::unique_ptr<RailInterface> interface = nullptr);
  // Returns the one that this process shares at this address. With `make_interface`, which is
  // called if it is the first user, another one than without.
  static absl::StatusOr<std::shared_ptr<RailListener>> Shared(
      const net::IpAddress& local,
      const std::function<std::unique_ptr<RailInterface>()>& make_interface = nullptr);
  ~RailListener() override;
  RailListener(const RailListener&) = delete;
  RailListener& operator=(const RailListener&) = delete;

  const net::IpAddress& ip() const { return ip_; }
  uint16_t port() const { return port_; }
  // Null: connections come and go as the kernel routes them.
  const std::shared_ptr<RailInterface>& interface() const { return interface_; }

  // The inbox must stay where it is until Remove, which closes its connections.
  void Add(Inbox& inbox);
  void Remove(Inbox& inbox);

  // Accepts connections and reads what they send, at once.
  absl::Status Admit(absl::Time now);

  // Latest connection of the rank with this token, and its Hello, or an invalid descriptor. A newer
  // connection replaces older ones, which the peer has given up.
  struct Caller {
    net::Fd fd;
    std::string hello;
  };
  Caller Take(const Inbox& inbox, absl::string_view token);
  bool Has(const Inbox& inbox, absl::string_view token) const;
  // Returns the tokens of waiting connections.
  std::vector<std::string> Callers(const Inbox& inbox) const;

  // Returns the number of connections rejected since the last call that named this inbox or none.
  uint64_t TakeStrangers(Inbox& inbox);

 private:
  struct Visitor {
    net::Fd fd;
    std::string said;
    absl::Time patience;
    Inbox* inbox = nullptr;  // that it has named
    std::string from = "";   // token of the proven rank; "" before
  };
  using Visitors = std::list<Visitor>;

  RailListener(std::shared_ptr<net::WatchThread> thread, std::unique_ptr<RailInterface> interface,
               const net::IpAddress& ip, uint16_t port, std::vector<net::Fd> listeners);

  std::optional<absl::Time> Turn() override;

  // All are called with the mutex held.
  absl::Status Accept(absl::Time now);
  absl::Status AcceptFrom(const net::Fd& listener, absl::Time now);
  absl::Status WatchListeners();
  void IgnoreListeners();
  // Makes room for a connection: unproven ones must not take all descriptors.
  void LimitUnproven();
  bool Hear(Visitor& visitor, absl::Time now);
  bool Believe(Visitor& visitor) const;
  Visitors::iterator Erase(Visitors::iterator visitor);
  Visitors::iterator Reject(Visitors::iterator visitor);
  absl::Status Watch(const net::Fd& fd);

  const std::shared_ptr<net::WatchThread> thread_;
  const net::IpAddress ip_;
  const uint16_t port_;
  const std::shared_ptr<RailInterface> interface_;
  const std::vector<net::Fd> listeners_;

  mutable std::mutex mutex_;
  std::map<std::string, Inbox*, std::less<>> inboxes_;  // by token
  std::multiset<size_t> peers_;                         // of the inboxes
  std::deque<std::string> removed_;                     // tokens of the latest inboxes
  uint64_t strangers_ = 0;                              // that named no inbox
  std::optional<absl::Time> closed_until_;              // the sockets are not watched until then
  Visitors visitors_;
  std::atomic<bool> stop_{false};
};

}  // namespace railhead::transport

#endif  // RAILHEAD_RUNTIME_TRANSPORT_CONNECT_RAIL_LISTENER_H_
