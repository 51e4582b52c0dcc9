// SPDX-License-Identifier: Apache-2.0
// MPI's collectives, as programs call them.
#include "mpi/calls.h"
#include "mpi/collectives.h"
#include "mpi/export.h"

namespace railhead::mpi {
namespace {

Outcome CheckCounts(const int* counts, const Group& group) {
  for (int r = 0; r < group.size(); ++r) {
    if (counts[r] < 0) return CheckCount(counts[r]);
  }
  return {};
}

Outcome CheckRoot(const Group& group, int root) {
  Outcome outcome = group.CheckRank(root, "the root");
  if (!outcome.ok()) outcome.error = kErrorRoot;
  return outcome;
}

// A buffer that is not MPI_IN_PLACE has a count and a type.
Outcome CheckBuffer(const void* buffer, int count, const Datatype* type) {
  if (buffer == kInPlace) return {};
  return First(CheckCount(count), CheckType(type));
}

}  // namespace

RAILHEAD_MPI(Allreduce, const void* send, void* receive, int count, Datatype* type, Operator* op,
             Communicator* comm) {
  return Collective("MPI_Allreduce", comm, [&](Group& group) {
    Outcome outcome = First(CheckCount(count), CheckType(type), CheckOperator(op));
    return outcome.ok() ? AllReduce(group, send, receive, count, type, *op) : outcome;
  });
}

RAILHEAD_MPI(Reduce, const void* send, void* receive, int count, Datatype* type, Operator* op,
             int root, Communicator* comm) {
  return Collective("MPI_Reduce", comm, [&](Group& group) {
    Outcome outcome =
        First(CheckCount(count), CheckType(type), CheckOperator(op), CheckRoot(group, root));
    return outcome.ok() ? Reduce(group, send, receive, count, type, *op, root) : outcome;
  });
}

RAILHEAD_MPI(Reduce_scatter, const void* send, void* receive, const int* counts, Datatype* type,
             Operator* op, Communicator* comm) {
  return Collective("MPI_Reduce_scatter", comm, [&](Group& group) {
    Outcome outcome = First(CheckCounts(counts, group), CheckType(type), CheckOperator(op));
    return outcome.ok() ? ReduceScatter(group, send, receive, counts, type, *op) : outcome;
  });
}

RAILHEAD_MPI(Reduce_scatter_block, const void* send, void* receive, int count, Datatype* type,
             Operator* op, Communicator* comm) {
  return Collective("MPI_Reduce_scatter_block", comm, [&](Group& group) {
    Outcome outcome = First(CheckCount(count), CheckType(type), CheckOperator(op));
    return outcome.ok() ? ReduceScatterBlock(group, send, receive, count, type, *op) : outcome;
  });
}

RAILHEAD_MPI(Allgather, const void* send, int send_count, Datatype* send_type, void* receive,
             int count, Datatype* type, Communicator* comm) {
  return Collective("MPI_Allgather", comm, [&](Group& group) {
    Outcome outcome =
        First(CheckBuffer(send, send_count, send_type), CheckCount(count), CheckType(type));
    return outcome.ok() ? AllGather(group, send, send_count, send_type, receive, count, *type)
                        : outcome;
  });
}

RAILHEAD_MPI(Allgatherv, const void* send, int send_count, Datatype* send_type, void* receive,
             const int* counts, const int* displacements, Datatype* type, Communicator* comm) {
  return Collective("MPI_Allgatherv", comm, [&](Group& group) {
    Outcome outcome = First(CheckBuffer(send, send_count, send_type), CheckType(type),
                            CheckCounts(counts, group));
    return outcome.ok() ? AllGatherv(group, send, send_count, send_type, receive, counts,
                                     displacements, *type)
                        : outcome;
  });
}

RAILHEAD_MPI(Bcast, void* buffer, int count, Datatype* type, int root, Communicator* comm) {
  return Collective("MPI_Bcast", comm, [&](Group& group) {
    Outcome outcome = First(CheckCount(count), CheckType(type), CheckRoot(group, root));
    return outcome.ok() ? Broadcast(group, buffer, count, *type, root) : outcome;
  });
}

RAILHEAD_MPI(Gather, const void* send, int send_count, Datatype* send_type, void* receive,
             int count, Datatype* type, int root, Communicator* comm) {
  return Collective("MPI_Gather", comm, [&](Group& group) {
    Outcome outcome = First(CheckRoot(group, root), CheckBuffer(send, send_count, send_type));
    if (outcome.ok() && group.rank() == root) outcome = CheckBuffer(receive, count, type);
    return outcome.ok() ? Gather(group, send, send_count, send_type, receive, count, type, root)
                        : outcome;
  });
}

RAILHEAD_MPI(Gatherv, const void* send, int send_count, Datatype* send_type, void* receive,
             const int* counts, const int* displacements, Datatype* type, int root,
             Communicator* comm) {
  return Collective("MPI_Gatherv", comm, [&](Group& group) {
    Outcome outcome = First(CheckRoot(group, root), CheckBuffer(send, send_count, send_type));
    if (outcome.ok() && group.rank() == root) {
      outcome = First(CheckType(type), CheckCounts(counts, group));
    }
    return outcome.ok() ? Gatherv(group, send, send_count, send_type, receive, counts,
                                  displacements, type, root)
                        : outcome;
  });
}

RAILHEAD_MPI(Scatter, const void* send, int send_count, Datatype* send_type, void* receive,
             int count, Datatype* type, int root, Communicator* comm) {
  return Collective("MPI_Scatter", comm, [&](Group& group) {
    Outcome outcome = First(CheckRoot(group, root), CheckBuffer(receive, count, type));
    if (outcome.ok() && group.rank() == root) outcome = CheckBuffer(send, send_count, send_type);
    return outcome.ok() ? Scatter(group, send, send_count, send_type, receive, count, type, root)
                        : outcome;
  });
}

RAILHEAD_MPI(Scatterv, const void* send, const int* counts, const int* displacements,
             Datatype* send_type, void* receive, int count, Datatype* type, int root,
             Communicator* comm) {
  return Collective("MPI_Scatterv", comm, [&](Group& group) {
    Outcome outcome = First(CheckRoot(group, root), CheckBuffer(receive, count, type));
    if (outcome.ok() && group.rank() == root) {
      outcome = First(CheckType(send_type), CheckCounts(counts, group));
    }
    return outcome.ok()
               ? Scatterv(group, send, counts, displacements, send_type, receive, count, type, root)
               : outcome;
  });
}

RAILHEAD_MPI(Alltoall, const void* send, int send_count, Datatype* send_type, void* receive,
             int count, Datatype* type, Communicator* comm) {
  return Collective("MPI_Alltoall", comm, [&](Group& group) {
    Outcome outcome =
        First(CheckBuffer(send, send_count, send_type), CheckCount(count), CheckType(type));
    return outcome.ok() ? AllToAll(group, send, send_count, send_type, receive, count, *type)
                        : outcome;
  });
}

RAILHEAD_MPI(Alltoallv, const void* send, const int* send_counts, const int* send_displacements,
             Datatype* send_type, void* receive, const int* counts, const int* displacements,
             Datatype* type, Communicator* comm) {
  return Collective("MPI_Alltoallv", comm, [&](Group& group) {
    Outcome outcome = First(CheckType(type), CheckCounts(counts, group));
    if (outcome.ok() && send != kInPlace) {
      outcome = First(CheckType(send_type), CheckCounts(send_counts, group));
    }
    return outcome.ok() ? AllToAllv(group, send, send_counts, send_displacements, send_type,
                                    receive, counts, displacements, *type)
                        : outcome;
  });
}

RAILHEAD_MPI(Barrier, Communicator* comm) {
  return Collective("MPI_Barrier", comm, [](Group& group) { return Barrier(group); });
}

}  // namespace railhead::mpi
