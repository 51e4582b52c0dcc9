// SPDX-License-Identifier: Apache-2.0
//
// MPI's collectives, by those of librailhead. Arguments are MPI's, with the same meaning: counts
// and displacements in elements of the type beside them, MPI_IN_PLACE as a buffer where MPI allows
// it. Counts are not negative, types and operators not null: export_collectives.cc has checked
// them, except those of a buffer that is MPI_IN_PLACE, which may be anything.
#ifndef RAILHEAD_MPI_COLLECTIVES_H_
#define RAILHEAD_MPI_COLLECTIVES_H_

#include "mpi/group.h"
#include "mpi/objects.h"

namespace railhead::mpi {

inline void* const kInPlace = reinterpret_cast<void*>(1);

Outcome AllReduce(Group& group, const void* send, void* receive, int count, Datatype* type,
                  const Operator& op);
Outcome Reduce(Group& group, const void* send, void* receive, int count, Datatype* type,
               const Operator& op, int root);
Outcome ReduceScatter(Group& group, const void* send, void* receive, const int* counts,
                      Datatype* type, const Operator& op);
// MPI_Reduce_scatter_block.
Outcome ReduceScatterBlock(Group& group, const void* send, void* receive, int count, Datatype* type,
                           const Operator& op);
Outcome AllGather(Group& group, const void* send, int send_count, const Datatype* send_type,
                  void* receive, int count, const Datatype& type);
Outcome AllGatherv(Group& group, const void* send, int send_count, const Datatype* send_type,
                   void* receive, const int* counts, const int* displacements,
                   const Datatype& type);
Outcome Broadcast(Group& group, void* buffer, int count, const Datatype& type, int root);
Outcome Gather(Group& group, const void* send, int send_count, const Datatype* send_type,
               void* receive, int count, const Datatype* type, int root);
Outcome Gatherv(Group& group, const void* send, int send_count, const Datatype* send_type,
                void* receive, const int* counts, const int* displacements, const Datatype* type,
                int root);
Outcome Scatter(Group& group, const void* send, int send_count, const Datatype* send_type,
                void* receive, int count, const Datatype* type, int root);
Outcome Scatterv(Group& group, const void* send, const int* counts, const int* displacements,
                 const Datatype* send_type, void* receive, int count, const Datatype* type,
                 int root);
Outcome AllToAll(Group& group, const void* send, int send_count, const Datatype* send_type,
                 void* receive, int count, const Datatype& type);
Outcome AllToAllv(Group& group, const void* send, const int* send_counts,
                  const int* send_displacements, const Datatype* send_type, void* receive,
                  const int* counts, const int* displacements, const Datatype& type);
Outcome Barrier(Group& group);

}  // namespace railhead::mpi

#endif  // RAILHEAD_MPI_COLLECTIVES_H_
