// SPDX-License-Identifier: Apache-2.0
//
// Finds the ranks that can share memory, for MPI_Comm_split_type.
#ifndef RAILHEAD_MPI_SAME_HOST_H_
#define RAILHEAD_MPI_SAME_HOST_H_

#include "mpi/group.h"

namespace railhead::mpi {

// For MPI_COMM_TYPE_SHARED: the lowest rank of `group` that could share memory with this one, which
// means that both run in one boot of one kernel and in one IPC namespace (a pod's containers share
// it). A collective.
Outcome FirstRankOfThisHost(Group& group, int* first);

}  // namespace railhead::mpi

#endif  // RAILHEAD_MPI_SAME_HOST_H_
