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

// `buffer` may not be MPI_IN_PLACE.
Outcome CheckMemory(const void* buffer) {
  if (buffer != kInPlace) return {};
  return {kErrorBuffer, "MPI does not allow MPI_IN_PLACE for this buffer on this rank"};
}

Outcome CheckBuffer(const void* buffer, int count, const Datatype* type) {
  return First(CheckMemory(buffer), CheckCount(count), CheckType(type));
}

// `buffer` may be MPI_IN_PLACE, which has neither a count nor a type.
Outcome CheckBufferOrInPlace(const void* buffer, int count, const Datatype* type) {
  return buffer == kInPlace ? Outcome{} : CheckBuffer(buffer, count, type);
}

// The same, where MPI allows MPI_IN_PLACE only on the root.
Outcome CheckRootsBuffer(bool is_root, const void* buffer, int count, const Datatype* type) {
  return is_root ? CheckBufferOrInPlace(buffer, count, type) : CheckBuffer(buffer, count, type);
}

}  // namespace

RAILHEAD_MPI(Allreduce, const void* send, void* receive, int count, Datatype* type, Operator* op,
             Communicator* comm) {
  return Collective("MPI_Allreduce", comm, [&](Group& group) {
    Outcome outcome = First(CheckBuffer(receive, count, type), CheckOperator(op));
    return outcome.ok() ? AllReduce(group, send, receive, count, type, *op) : outcome;
  });
}

RAILHEAD_MPI(Reduce, const void* send, void* receive, int count, Datatype* type, Operator* op,
             int root, Communicator* comm) {
  return Collective("MPI_Reduce", comm, [&](Group& group) {
    const bool is_root = group.rank() == root;
    Outcome outcome = First(CheckCount(count), CheckType(type), CheckOperator(op),
                            CheckRoot(group, root), CheckMemory(is_root ? receive : send));
    return outcome.ok() ? Reduce(group, send, receive, count, type, *op, root) : outcome;
  });
}

RAILHEAD_MPI(Reduce_scatter, const void* send, void* receive, const int* counts, Datatype* type,
             Operator* op, Communicator* comm) {
  return Collective("MPI_Reduce_scatter", comm, [&](Group& group) {
    Outcome outcome =
        First(CheckMemory(receive), CheckCounts(counts, group), CheckType(type), CheckOperator(op));
    return outcome.ok() ? ReduceScatter(group, send, receive, counts, type, *op) : outcome;
  });
}

RAILHEAD_MPI(Reduce_scatter_block, const void* send, void* receive, int count, Datatype* type,
             Operator* op, Communicator* comm) {
  return Collective("MPI_Reduce_scatter_block", comm, [&](Group& group) {
    Outcome outcome = First(CheckBuffer(receive, count, type), CheckOperator(op));
    return outcome.ok() ? ReduceScatterBlock(group, send, receive, count, type, *op) : outcome;
  });
}

RAILHEAD_MPI(Allgather, const void* send, int send_count, Datatype* send_type, void* receive,
             int count, Datatype* type, Communicator* comm) {
  return Collective("MPI_Allgather", comm, [&](Group& group) {
    Outcome outcome =
        First(CheckBufferOrInPlace(send, send_count, send_type), CheckBuffer(receive, count, type));
    return outcome.ok() ? AllGather(group, send, send_count, send_type, receive, count, *type)
                        : outcome;
  });
}

RAILHEAD_MPI(Allgatherv, const void* send, int send_count, Datatype* send_type, void* receive,
             const int* counts, const int* displacements, Datatype* type, Communicator* comm) {
  return Collective("MPI_Allgatherv", comm, [&](Group& group) {
    Outcome outcome = First(CheckBufferOrInPlace(send, send_count, send_type), CheckMemory(receive),
                            CheckType(type), CheckCounts(counts, group));
    return outcome.ok() ? AllGatherv(group, send, send_count, send_type, receive, counts,
                                     displacements, *type)
                        : outcome;
  });
}

RAILHEAD_MPI(Bcast, void* buffer, int count, Datatype* type, int root, Communicator* comm) {
  return Collective("MPI_Bcast", comm, [&](Group& group) {
    Outcome outcome = First(CheckBuffer(buffer, count, type), CheckRoot(group, root));
    return outcome.ok() ? Broadcast(group, buffer, count, *type, root) : outcome;
  });
}

RAILHEAD_MPI(Gather, const void* send, int send_count, Datatype* send_type, void* receive,
             int count, Datatype* type, int root, Communicator* comm) {
  return Collective("MPI_Gather", comm, [&](Group& group) {
    const bool is_root = group.rank() == root;
    Outcome outcome =
        First(CheckRoot(group, root), CheckRootsBuffer(is_root, send, send_count, send_type));
    if (outcome.ok() && is_root) outcome = CheckBuffer(receive, count, type);
    return outcome.ok() ? Gather(group, send, send_count, send_type, receive, count, type, root)
                        : outcome;
  });
}

RAILHEAD_MPI(Gatherv, const void* send, int send_count, Datatype* send_type, void* receive,
             const int* counts, const int* displacements, Datatype* type, int root,
             Communicator* comm) {
  return Collective("MPI_Gatherv", comm, [&](Group& group) {
    const bool is_root = group.rank() == root;
    Outcome outcome =
        First(CheckRoot(group, root), CheckRootsBuffer(is_root, send, send_count, send_type));
    if (outcome.ok() && is_root) {
      outcome = First(CheckMemory(receive), CheckType(type), CheckCounts(counts, group));
    }
    return outcome.ok() ? Gatherv(group, send, send_count, send_type, receive, counts,
                                  displacements, type, root)
                        : outcome;
  });
}

RAILHEAD_MPI(Scatter, const void* send, int send_count, Datatype* send_type, void* receive,
             int count, Datatype* type, int root, Communicator* comm) {
  return Collective("MPI_Scatter", comm, [&](Group& group) {
    const bool is_root = group.rank() == root;
    Outcome outcome =
        First(CheckRoot(group, root), CheckRootsBuffer(is_root, receive, count, type));
    if (outcome.ok() && is_root) outcome = CheckBuffer(send, send_count, send_type);
    return outcome.ok() ? Scatter(group, send, send_count, send_type, receive, count, type, root)
                        : outcome;
  });
}

RAILHEAD_MPI(Scatterv, const void* send, const int* counts, const int* displacements,
             Datatype* send_type, void* receive, int count, Datatype* type, int root,
             Communicator* comm) {
  return Collective("MPI_Scatterv", comm, [&](Group& group) {
    const bool is_root = group.rank() == root;
    Outcome outcome =
        First(CheckRoot(group, root), CheckRootsBuffer(is_root, receive, count, type));
    if (outcome.ok() && is_root) {
      outcome = First(CheckMemory(send), CheckType(send_type), CheckCounts(counts, group));
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
        First(CheckBufferOrInPlace(send, send_count, send_type), CheckBuffer(receive, count, type));
    return outcome.ok() ? AllToAll(group, send, send_count, send_type, receive, count, *type)
                        : outcome;
  });
}

RAILHEAD_MPI(Alltoallv, const void* send, const int* send_counts, const int* send_displacements,
             Datatype* send_type, void* receive, const int* counts, const int* displacements,
             Datatype* type, Communicator* comm) {
  return Collective("MPI_Alltoallv", comm, [&](Group& group) {
    Outcome outcome = First(CheckMemory(receive), CheckType(type), CheckCounts(counts, group));
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
