// SPDX-License-Identifier: Apache-2.0
//
// Makes this process a rank of a process group. Used by register.cc, after Python has exchanged
// the id, and for groups that are split off.
#ifndef RAILHEAD_PYTHON_TORCH_JOIN_GROUP_H_
#define RAILHEAD_PYTHON_TORCH_JOIN_GROUP_H_

#include <railhead/railhead.h>

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "backend.h"

namespace railhead_torch {

// Values that rank 0 of a group chooses for all of its ranks.
struct Invitation {
  rhUniqueId id;
  // Its own timeout. The library's must be the same on all ranks, and torch's need not be.
  std::chrono::milliseconds timeout;
};

// Returns the backend of the group `name`, all of whose ranks call it with one invitation. Waits
// for them. Throws DistBackendError with the library's text. `timeout` is that of each call on this
// rank.
c10::intrusive_ptr<RailheadBackend> JoinGroup(const Invitation& invitation, int rank, int size,
                                              std::chrono::milliseconds timeout,
                                              const std::string& name);

// Returns the invitation by rank 0 of a group that is split off, carried by the new group's store.
// A failure of rank 0 fails all. The key contains the id of the group that is split, because
// torchrun keeps the store when it restarts a job, and a number, because several groups may have
// the same part of the store.
Invitation ExchangeInvitation(const c10::intrusive_ptr<c10d::Store>& store,
                              const rhUniqueId& parent, int rank,
                              std::chrono::milliseconds timeout);

}  // namespace railhead_torch

#endif  // RAILHEAD_PYTHON_TORCH_JOIN_GROUP_H_
