// SPDX-License-Identifier: Apache-2.0
//
// MPI in this process: MPI_COMM_WORLD, MPI_COMM_SELF and all other communicators, from MPI_Init to
// MPI_Finalize. Used by all exported functions.
#ifndef RAILHEAD_MPI_PROCESS_H_
#define RAILHEAD_MPI_PROCESS_H_

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "mpi/attributes.h"
#include "mpi/group.h"
#include "mpi/objects.h"
#include "mpi/predefined.h"

namespace railhead::mpi {

// Thread-safe.
class Process {
 public:
  enum class State { kBefore, kRunning, kAfter };

  static Process& Instance();

  // Joins the job that the environment describes (railhead-environment(7)); a process that no
  // launcher has started is a job with one rank. Later calls do nothing.
  Outcome Initialize();
  // Deletes the attributes of MPI_COMM_SELF, the latest first, then leaves all communicators.
  Outcome Finalize();
  State state();

  // The group of a handle; null if it is none, or if MPI does not run.
  std::shared_ptr<Group> Find(Communicator* handle);
  // As Find for MPI_COMM_WORLD, without a lock; null for others. It lives until MPI_Finalize.
  Group* World(const Communicator* handle) const {
    return handle == CommWorld() ? running_world_.load(std::memory_order_acquire) : nullptr;
  }

  // A handle for a communicator of the library, made from `parent` (whose error handler it takes);
  // null for null.
  Outcome Adopt(const Group& parent, rhComm_t comm, Communicator** handle);
  // Deletes the attributes and ends the handle. The communicator is left when its last request is
  // done. MPI_COMM_WORLD and MPI_COMM_SELF cannot be freed.
  Outcome Free(Communicator* handle);

  AttributeKeys& attribute_keys() { return attribute_keys_; }

 private:
  std::shared_ptr<Group> SelfGroup();  // with mutex_ held; null if it cannot be made

  AttributeKeys attribute_keys_;
  std::mutex mutex_;  // guards what follows
  State state_ = State::kBefore;
  std::shared_ptr<Group> world_;
  std::atomic<Group*> running_world_{nullptr};  // world_, while MPI runs
  std::shared_ptr<Group> self_;                 // made when it is first used
  std::map<Communicator*, std::shared_ptr<Group>> others_;
};

}  // namespace railhead::mpi

#endif  // RAILHEAD_MPI_PROCESS_H_
