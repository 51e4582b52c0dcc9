// SPDX-License-Identifier: Apache-2.0
//
// The paths of a communicator's collectives: rails, and memory that all ranks, or the ranks of this
// place, share.
#ifndef RAILHEAD_RUNTIME_COMM_COMMUNICATOR_PATHS_H_
#define RAILHEAD_RUNTIME_COMM_COMMUNICATOR_PATHS_H_

#include <memory>
#include <optional>

#include "runtime/base/traffic.h"
#include "runtime/comm/hierarchy/hierarchy.h"
#include "runtime/comm/hierarchy/patient.h"
#include "runtime/rails/mesh.h"
#include "runtime/shm/group.h"
#include "runtime/shm/mailbox.h"

namespace railhead::comm {

struct Paths {
  bool over_verbs = false;                // all messages go over RDMA
  std::unique_ptr<rails::Mesh> mesh;      // without peers if all ranks share memory
  std::unique_ptr<Patient> patient;       // over the mesh
  std::unique_ptr<shm::Group> group;      // if all ranks share memory
  std::unique_ptr<shm::Mailbox> mailbox;  // if there is a group
  std::unique_ptr<Hierarchy> hierarchy;   // if some places share memory

  // Returns the group of the ranks that share memory with this one; null if there are none.
  shm::Group* GroupHere() const {
    return hierarchy != nullptr ? &hierarchy->memory() : group.get();
  }

  // Thread-safe. Bytes exchanged through shared memory; nullopt without it.
  std::optional<Traffic> InMemory() const {
    if (hierarchy != nullptr) return hierarchy->Moved();
    if (group == nullptr) return std::nullopt;
    return Traffic{group->given_bytes() + mailbox->given_bytes(),
                   group->taken_bytes() + mailbox->taken_bytes()};
  }
  // Bytes exchanged over all paths.
  Traffic Moved() const {
    if (group != nullptr) return *InMemory();
    Traffic moved = mesh->Moved();
    moved += InMemory().value_or(Traffic());
    return moved;
  }
};

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_COMMUNICATOR_PATHS_H_
