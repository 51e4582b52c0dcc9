// SPDX-License-Identifier: Apache-2.0
//
// One communicator of MPI: a communicator of the library, and what a program has attached to it.
// Process (process.h) owns all of them.
#ifndef RAILHEAD_MPI_GROUP_H_
#define RAILHEAD_MPI_GROUP_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "mpi/objects.h"
#include "railhead/railhead.h"

namespace railhead::mpi {

class Group {
 public:
  Group(rhComm_t comm, int rank, int size) : comm_(comm), rank_(rank), size_(size) {}
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group() { rhCommDestroy(comm_); }

  // A group of `comm`, which it then owns; or why there is none.
  static Outcome Of(rhComm_t comm, std::unique_ptr<Group>* group);

  rhComm_t comm() const { return comm_; }
  int rank() const { return rank_; }
  int size() const { return size_; }

  // The outcome of a call of the library on this communicator.
  Outcome Check(rhResult_t result) const;
  // Checks that `rank` is one of this group; `what` is its name in the error.
  Outcome CheckRank(int rank, const char* what) const;

  // The library allows one collective at a time; MPI lets several threads call, one after the
  // other.
  std::mutex& one_call() { return one_call_; }

  // The program sets the members below, one thread at a time.
  bool errors_return = false;  // MPI_ERRORS_RETURN
  std::string name;
  std::map<int, void*> attributes;  // by key

 private:
  rhComm_t comm_;
  const int rank_;
  const int size_;
  std::mutex one_call_;
};

// The outcome of a call of the library: its error class by `result`, its text by `comm` (may be
// null).
Outcome OutcomeOf(rhResult_t result, rhComm_t comm);

}  // namespace railhead::mpi

#endif  // RAILHEAD_MPI_GROUP_H_
