// SPDX-License-Identifier: Apache-2.0
//
// Begin and end of every exported MPI function: it finds the communicator, runs a body that returns
// an Outcome, and reports a failure as the error handler requires.
#ifndef RAILHEAD_MPI_CALLS_H_
#define RAILHEAD_MPI_CALLS_H_

#include <cstddef>
#include <memory>
#include <mutex>
#include <new>

#include "mpi/group.h"
#include "mpi/objects.h"
#include "mpi/predefined.h"
#include "mpi/process.h"

namespace railhead::mpi {

// Tells of a failure of `name` (as "MPI_Bcast") as the error handler wants it: returns the error
// class, or ends the process with the reason on standard error. `group` may be null.
int Report(const char* name, const Group* group, const Outcome& outcome);

// The reason of this thread's last failure of this class, or a general sentence.
std::string ErrorText(int error);

// Every call makes these checks: inline where nothing is wrong.
Outcome WrongType();
Outcome WrongCount(int count);
inline Outcome CheckType(const Datatype* type) {
  return type != nullptr && type != DatatypeNull() ? Outcome() : WrongType();
}
inline Outcome CheckCount(int count) { return count >= 0 ? Outcome() : WrongCount(count); }
Outcome CheckOperator(const Operator* op);

// The first that is not OK.
template <typename... Outcomes>
Outcome First(Outcome first, Outcomes... others) {
  if constexpr (sizeof...(others) > 0) {
    if (first.ok()) return First(others...);
  }
  return first;
}

// Runs `body`, which is an Outcome of the group of `comm`, and reports its failure.
template <typename Body>
int On(const char* name, Communicator* comm, Body body) {
  Process& process = Process::Instance();
  std::shared_ptr<Group> found;
  Group* group = process.World(comm);
  if (group == nullptr) group = (found = process.Find(comm)).get();
  if (group == nullptr) {
    return Report(
        name, nullptr,
        {kErrorComm, "the communicator is none, or MPI is not running (MPI_Init, MPI_Finalize)"});
  }
  const auto run = [&]() -> Outcome {
    try {
      return body(*group);
    } catch (const std::bad_alloc&) {
      return {kErrorNoMemory, "not enough memory for a copy of the data"};
    }
  };
  const Outcome outcome = run();
  return outcome.ok() ? kSuccess : Report(name, group, outcome);
}

// As On, for a collective: one at a time for each communicator.
template <typename Body>
int Collective(const char* name, Communicator* comm, Body body) {
  return On(name, comm, [&body](Group& group) {
    const std::lock_guard<std::mutex> lock(group.one_call());
    return body(group);
  });
}

}  // namespace railhead::mpi

#endif  // RAILHEAD_MPI_CALLS_H_
