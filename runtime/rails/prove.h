// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_RAILS_PROVE_H_
#define RAILHEAD_RUNTIME_RAILS_PROVE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/transport/link.h"

namespace railhead::rails {

// A fresh link, and the greeting that must have crossed it in both directions before it is trusted.
struct LinkTrial {
  transport::Link* link = nullptr;
  std::string say;     // what this rank sends
  std::string expect;  // what the peer must send
  absl::Status result;
};

// Tries all links at once and sets their results. Some transports call a link connected before the
// first byte has crossed it; a network that swallows everything would show only in the middle of a
// collective. Both sides must do this. Returns at the deadline at the latest.
void ProveLinks(std::vector<LinkTrial>& trials, absl::Time deadline);

}  // namespace railhead::rails

#endif  // RAILHEAD_RUNTIME_RAILS_PROVE_H_
