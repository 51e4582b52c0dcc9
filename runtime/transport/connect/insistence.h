// SPDX-License-Identifier: Apache-2.0
//
// Decides how long a rail insists on its interface in connections with a remote address, before it
// takes one that the kernel routes by another interface. Pure. Used by RailInterface.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_CONNECT_INSISTENCE_H_
#define RAILHEAD_RUNTIME_TRANSPORT_CONNECT_INSISTENCE_H_

#include <cstddef>
#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace railhead::transport {

// A connection by the interface that has worked once works again when the network does: from then
// on nothing else is taken, or a rail that is lost for a while would move to another rail's NIC.
class Insistence {
 public:
  // Longer than neighbours take to learn which interface has an address: Linux keeps the answer of
  // the first for a second.
  static constexpr absl::Duration kPatience = absl::Seconds(3);
  // After that time the next connection insists anew.
  static constexpr absl::Duration kMemory = absl::Minutes(1);
  // Addresses that did not work yet; for more the rail does not insist.
  static constexpr size_t kMostAddresses = 16384;

  // Returns true while only connections by the interface may be used. The first call starts the
  // wait. `running`: the interface has a carrier; without one nothing is learnt.
  bool Insists(absl::string_view remote, bool running, absl::Time now) {
    auto found = remotes_.find(remote);
    if (found == remotes_.end()) {
      if (remotes_.size() >= kMostAddresses) return false;
      found = remotes_.emplace(std::string(remote), Remote{now, false}).first;
    }
    Remote& known = found->second;
    if (known.works) return true;
    if (!running || now >= known.since + kMemory) known.since = now;
    return now < known.since + kPatience;
  }

  // A connection by the interface has been made.
  void Works(absl::string_view remote) {
    remotes_[std::string(remote)] = {absl::InfinitePast(), true};
  }

 private:
  struct Remote {
    absl::Time since;
    bool works = false;
  };

  std::map<std::string, Remote, std::less<>> remotes_;
};

}  // namespace railhead::transport

#endif  // RAILHEAD_RUNTIME_TRANSPORT_CONNECT_INSISTENCE_H_
