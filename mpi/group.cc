// SPDX-License-Identifier: Apache-2.0
#include "mpi/group.h"

#include <algorithm>
#include <numeric>

namespace railhead::mpi {

Outcome Failure(rhResult_t result, rhComm_t comm) {
  const std::string text = rhGetLastError(comm);
  return {result == rhInvalidArgument ? kErrorArg : kErrorOther,
          text.empty() ? rhGetErrorString(result) : text};
}

Comparison Compare(std::vector<int> one, std::vector<int> other) {
  if (one == other) return kCongruent;
  std::sort(one.begin(), one.end());
  std::sort(other.begin(), other.end());
  return one == other ? kSimilar : kUnequal;
}

Group::Group(rhComm_t comm, int rank, int size)
    : comm_(comm), rank_(rank), size_(size), members_(static_cast<size_t>(size)) {
  std::iota(members_.begin(), members_.end(), 0);
}

Outcome Group::FindMembers(int rank_in_world) {
  return Check(rhAllGather(&rank_in_world, members_.data(), 1, rhInt32, comm_, nullptr));
}

Outcome Group::Of(rhComm_t comm, std::shared_ptr<Group>* group) {
  int rank = 0;
  int size = 0;
  rhResult_t result = rhCommUserRank(comm, &rank);
  if (result == rhSuccess) result = rhCommCount(comm, &size);
  if (result != rhSuccess) {
    Outcome outcome = OutcomeOf(result, comm);
    rhCommDestroy(comm);
    return outcome;
  }
  *group = std::make_shared<Group>(comm, rank, size);
  return {};
}

Outcome Group::WrongRank(int rank, const char* what) const {
  return {kErrorRank, std::string(what) + " is " + std::to_string(rank) + "; it may be 0 to " +
                          std::to_string(size_ - 1)};
}

}  // namespace railhead::mpi
