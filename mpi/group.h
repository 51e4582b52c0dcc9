// SPDX-License-Identifier: Apache-2.0
//
// One communicator of MPI: a communicator of the library, and what a program has attached to it.
// It ends when its handle is freed and its last request is done: Process (process.h) shares it with
// the requests.
#ifndef RAILHEAD_MPI_GROUP_H_
#define RAILHEAD_MPI_GROUP_H_

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "mpi/attributes.h"
#include "mpi/objects.h"
#include "railhead/railhead.h"

namespace railhead::mpi {

class Group : public std::enable_shared_from_this<Group> {
 public:
  Group(rhComm_t comm, int rank, int size);
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group() { rhCommDestroy(comm_); }

  // A group of `comm`, which it then owns; or why there is none.
  static Outcome Of(rhComm_t comm, std::shared_ptr<Group>* group);

  rhComm_t comm() const { return comm_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  // The rank in MPI_COMM_WORLD of each rank.
  const std::vector<int>& members() const { return members_; }
  // Finds them; without it they are those of MPI_COMM_WORLD itself. A collective.
  Outcome FindMembers(int rank_in_world);

  // The outcome of a call of the library on this communicator.
  Outcome Check(rhResult_t result) const;  // see OutcomeOf
  // Checks that `rank` is one of this group; `what` is its name in the error.
  Outcome CheckRank(int rank, const char* what) const {
    return rank >= 0 && rank < size_ ? Outcome() : WrongRank(rank, what);
  }

  // The library allows one collective at a time; MPI lets several threads call, one after the
  // other.
  std::mutex& one_call() { return one_call_; }

  // The program sets the members below, one thread at a time.
  bool errors_return = false;  // MPI_ERRORS_RETURN
  std::string name;

  Attributes& attributes() { return attributes_; }

 private:
  Outcome WrongRank(int rank, const char* what) const;

  rhComm_t comm_;
  const int rank_;
  const int size_;
  std::vector<int> members_;
  std::mutex one_call_;
  Attributes attributes_;
};

// MPI's result of comparing two groups of different communicators, by their members.
enum Comparison : int { kIdentical = 0, kCongruent = 1, kSimilar = 2, kUnequal = 3 };
Comparison Compare(std::vector<int> one, std::vector<int> other);

// The outcome of a call of the library: its error class by `result`, its text by `comm` (may be
// null). Failure: of one that has failed.
Outcome Failure(rhResult_t result, rhComm_t comm);
inline Outcome OutcomeOf(rhResult_t result, rhComm_t comm) {
  return result == rhSuccess ? Outcome() : Failure(result, comm);
}

inline Outcome Group::Check(rhResult_t result) const { return OutcomeOf(result, comm_); }

}  // namespace railhead::mpi

#endif  // RAILHEAD_MPI_GROUP_H_
