// SPDX-License-Identifier: Apache-2.0
//
// How a process begins to be a rank of a process group. Used by register.cc, where Python has
// exchanged the id, and for groups that are split off.
#ifndef RAILHEAD_PYTHON_TORCH_JOIN_GROUP_H_
#define RAILHEAD_PYTHON_TORCH_JOIN_GROUP_H_

#include <railhead/railhead.h>

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "backend.h"

namespace railhead_torch {

// Returns the backend of the group `name`, all of whose ranks call it with one id. Waits for them.
// Throws DistBackendError with the library's text. `timeout` is for the start and for each call.
c10::intrusive_ptr<RailheadBackend> JoinGroup(const rhUniqueId& id, int rank, int size,
                                              std::chrono::milliseconds timeout,
                                              const std::string& name);

// Returns the id that rank 0 makes for a group that is split off, carried by the new group's store.
// What fails on rank 0 fails on all. The key has the id of the group that is split: torchrun keeps
// the store when it starts a job anew, and the groups of that start have other ids.
rhUniqueId ExchangeId(const c10::intrusive_ptr<c10d::Store>& store, const rhUniqueId& parent,
                      int rank, std::chrono::milliseconds timeout);

}  // namespace railhead_torch

#endif  // RAILHEAD_PYTHON_TORCH_JOIN_GROUP_H_
