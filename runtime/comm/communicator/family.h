// SPDX-License-Identifier: Apache-2.0
//
// Communicators that are made from another one (split, shrink, grow): their ranks meet again, with
// its settings.
#ifndef RAILHEAD_RUNTIME_COMM_COMMUNICATOR_FAMILY_H_
#define RAILHEAD_RUNTIME_COMM_COMMUNICATOR_FAMILY_H_

#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/bootstrap/watch.h"
#include "runtime/comm/communicator/call_executor.h"
#include "runtime/comm/setup/joining.h"
#include "runtime/comm/setup/setup.h"
#include "runtime/comm/setup/unique_id.h"
#include "runtime/config/env.h"
#include "runtime/net/address.h"
#include "runtime/net/fd.h"

namespace railhead::comm {

class Communicator;

// Options of a communicator that is created from another one.
struct MakingOptions {
  config::Fields fields;              // settings that differ from the other's (config::Configure)
  std::shared_ptr<StartAbort> abort;  // see CommunicatorOptions
};

class Family {
 public:
  // The communicator that they are made from; all outlive this.
  struct Parent {
    int rank;
    int world_size;
    const std::string& self;  // for messages
    const SetupOptions& setup;
    const Fabric& fabric;
    const bootstrap::Watch& watch;
    const std::atomic<bool>& aborted;
    CallExecutor& executor;
    net::IpAddress address;  // of this process for other ranks
  };
  explicit Family(const Parent& parent) : parent_(parent) {}

  // Creates a communicator of the ranks with the same colour, in the order of their keys; null for
  // a negative colour. All ranks must call it.
  absl::StatusOr<std::unique_ptr<Communicator>> Split(int color, int key,
                                                      const MakingOptions& options = {}) const;
  // Creates a communicator without the excluded ranks, also after a failure. All remaining ranks
  // must call it.
  absl::StatusOr<std::unique_ptr<Communicator>> Shrink(const std::set<int>& excluded,
                                                       const MakingOptions& options = {}) const;
  // Creates a communicator of all ranks, which keep their numbers, and of new ranks, which join at
  // `meeting` on their own.
  absl::StatusOr<std::unique_ptr<Communicator>> Grow(const UniqueId& meeting, int world_size,
                                                     const MakingOptions& options = {}) const;

 private:
  // Members and rendezvous of a new communicator. `place` is at its first member.
  struct Meeting {
    UniqueId place;
    std::optional<net::Fd> listener;                             // only on the first member
    std::shared_ptr<bootstrap::SharedListener> shared_listener;  // instead
    std::vector<int> members;  // ranks of the parent, in the new order
    int world_size = 0;        // including new ranks
    bool sound = false;        // a failure of the parent ends it, too
    SetupOptions setup;
  };
  absl::StatusOr<std::unique_ptr<Communicator>> Meet(Meeting meeting,
                                                     const MakingOptions& options) const;
  // Returns why not all of these members will come; OK while they may.
  absl::Status WhyHopeless(const std::vector<int>& members, bool sound) const;
  absl::Status WhyAborted() const;

  const Parent parent_;
};

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_COMMUNICATOR_FAMILY_H_
