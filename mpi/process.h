// SPDX-License-Identifier: Apache-2.0
//
// MPI in this process: MPI_COMM_WORLD, MPI_COMM_SELF and all other communicators, from MPI_Init to
// MPI_Finalize. Used by all exported functions.
#ifndef RAILHEAD_MPI_PROCESS_H_
#define RAILHEAD_MPI_PROCESS_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "mpi/group.h"
#include "mpi/objects.h"

namespace railhead::mpi {

// Thread-safe.
class Process {
 public:
  enum class State { kBefore, kRunning, kAfter };
  // MPI_Comm_delete_attr_function.
  using DeleteAttribute = int (*)(Communicator* comm, int key, void* value, void* extra);

  static Process& Instance();

  // Joins the job that the environment describes (railhead-environment(7)); a process that no
  // launcher has started is a job of its own. Later calls do nothing.
  Outcome Initialize();
  // Calls what the program has attached to MPI_COMM_SELF, then leaves all communicators.
  Outcome Finalize();
  State state();

  // The group of a handle; null if it is none, or if MPI does not run.
  std::shared_ptr<Group> Find(Communicator* handle);

  // A handle for a communicator of the library, made from `parent` (whose error handler it takes);
  // null for null.
  Outcome Adopt(const Group& parent, rhComm_t comm, Communicator** handle);
  // Ends the handle; the communicator is left when its last request is done. False if it is
  // MPI_COMM_WORLD, MPI_COMM_SELF or no handle of one.
  bool Free(Communicator* handle);

  // Keys of attributes.
  int NewKey(DeleteAttribute function, void* extra);
  bool HasKey(int key);

 private:
  struct Key {
    DeleteAttribute function;
    void* extra;
  };

  std::shared_ptr<Group> SelfGroup();  // with mutex_ held; null if it cannot be made

  std::mutex mutex_;  // guards what follows
  State state_ = State::kBefore;
  std::shared_ptr<Group> world_;
  std::shared_ptr<Group> self_;  // made when it is first used
  std::map<Communicator*, std::shared_ptr<Group>> others_;
  std::map<int, Key> keys_;
  int last_key_ = 100;  // MPI's own are below
};

}  // namespace railhead::mpi

#endif  // RAILHEAD_MPI_PROCESS_H_
