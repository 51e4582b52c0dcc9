// SPDX-License-Identifier: Apache-2.0
//
// The network interface of a TCP rail, and by which one the rail's connections leave.
//
// Linux routes by destination: of two interfaces in one subnet, one carries everything. A socket
// that is bound to an interface leaves by it, but also receives by it alone, and answers what comes
// in by another one with a reset. So a socket is bound only if the kernel would send by another
// interface, and not if the address is on a loopback, dummy or VRF device. A peer may send to the
// wrong interface of this machine, since Linux answers ARP requests for all of its addresses on
// each of them: then this side rejects the connection and announces the address, until the peer has
// learnt it. If that does not help, or sockets cannot be bound, the kernel's route is used, which
// is logged.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_CONNECT_RAIL_INTERFACE_H_
#define RAILHEAD_RUNTIME_TRANSPORT_CONNECT_RAIL_INTERFACE_H_

#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/base/log.h"
#include "runtime/net/address.h"
#include "runtime/net/route.h"
#include "runtime/transport/connect/insistence.h"

namespace railhead::transport {

// Returns true if it is a NIC, or stands for one: sockets are bound to it, and its counters count
// what a rail carries. False for the devices of addresses that routes lead to, as with BGP to the
// host.
bool IsNic(const net::Interface& interface);

// Thread-safe. No call waits.
class RailInterface {
 public:
  // The interface of this name, which may be down or have lost the address. `rail` names the rail
  // in the log.
  RailInterface(const net::IpAddress& address, absl::string_view interface, std::string rail,
                Logger log);
  RailInterface(const RailInterface&) = delete;
  RailInterface& operator=(const RailInterface&) = delete;

  // Returns true if the listener needs a socket that is bound to it.
  bool binds_listener() const { return binds() && shares_subnet_; }
  const std::string& name() const { return interface_.name; }
  bool is_nic() const { return is_nic_; }

  // Returns the interface to which a socket that connects to `remote` is to be bound; "": none.
  std::string ForDial(const net::IpAddress& remote, absl::Time now);
  // Returns false if an accepted connection came in by another interface and should be closed: the
  // peer then tries again. Binds it, if it came in by this one.
  bool Keep(int accepted, absl::Time now);
  // To be called for each connection that is used.
  void Connected(int fd, const net::IpAddress& remote);

  // The interface by which connections leave instead; "" if all leave by this one.
  std::string leaves_by() const;
  // A message about this for people, with the cause; "" also for an interface that is not a NIC.
  std::string trouble() const;
  // Returns what to do if the interface does not carry its rail.
  std::string Advice() const;

 private:
  bool binds() const { return is_nic_ && bindable_.ok(); }
  // Returns its present state; without an index if it is gone.
  net::Interface Present() const;
  // Returns true if the kernel sends to `remote` by this interface, or not by any.
  bool IsRouted(const net::IpAddress& remote, const net::Interface& present) const;
  // Returns true if a connection with `remote` must not use the kernel's route.
  bool Insists(const net::IpAddress& remote, const net::Interface& present, absl::Time now);
  void Report(const net::IpAddress& remote, int other);

  const net::IpAddress address_;
  const std::string rail_;
  const Logger log_;
  net::Interface interface_;
  bool is_nic_ = false;
  bool shares_subnet_ = false;
  absl::Status bindable_;  // of a trial

  mutable std::mutex mutex_;
  Insistence insistence_;
  absl::Time next_announcement_ = absl::InfinitePast();
  std::string leaves_by_;
  std::string trouble_;
};

}  // namespace railhead::transport

#endif  // RAILHEAD_RUNTIME_TRANSPORT_CONNECT_RAIL_INTERFACE_H_
