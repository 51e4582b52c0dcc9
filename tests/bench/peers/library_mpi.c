/* SPDX-License-Identifier: Apache-2.0
 *
 * Open MPI and MPICH, whichever's compiler wrapper builds this. MPI has no 16-bit floats. MPI's own
 * error handler ends the job. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library.h"

static char name[MPI_MAX_LIBRARY_VERSION_STRING];
static int rank;
static int ranks;

void LibraryOpen(int* argc, char*** argv) {
  int length = 0;
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Get_library_version(name, &length);
  /* "Open MPI v4.1.4, package: ..." or "MPICH Version: 4.0.2\n...". */
  name[strcspn(name, ",\n")] = '\0';
  for (char* c = name; *c != '\0'; ++c) {
    if (*c == '\t') *c = ' ';
  }
}

void LibraryClose(void) { MPI_Finalize(); }

const char* LibraryName(void) { return name; }
int LibraryRank(void) { return rank; }
int LibraryRanks(void) { return ranks; }

void* LibraryMemory(size_t bytes) {
  void* memory = NULL;
  MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &memory);
  return memory;
}

void LibraryRun(enum Collective collective, const void* send, void* receive, size_t count,
                enum Type type) {
  const MPI_Comm all = MPI_COMM_WORLD;
  const int n = (int)count;
  if (type != kFp32) {
    fprintf(stderr, "MPI has no 16-bit floats\n");
    MPI_Abort(all, 2);
  }
  switch (collective) {
    case kAllReduce:
      MPI_Allreduce(send, receive, n, MPI_FLOAT, MPI_SUM, all);
      break;
    case kReduce:
      MPI_Reduce(send, receive, n, MPI_FLOAT, MPI_SUM, kRoot, all);
      break;
    case kBroadcast:
      MPI_Bcast(rank == kRoot ? (void*)send : receive, n, MPI_FLOAT, kRoot, all);
      break;
    case kAllGather:
      MPI_Allgather(send, n, MPI_FLOAT, receive, n, MPI_FLOAT, all);
      break;
    case kReduceScatter:
      MPI_Reduce_scatter_block(send, receive, n, MPI_FLOAT, MPI_SUM, all);
      break;
    case kAllToAll:
      MPI_Alltoall(send, n, MPI_FLOAT, receive, n, MPI_FLOAT, all);
      break;
    case kGather:
      MPI_Gather(send, n, MPI_FLOAT, receive, n, MPI_FLOAT, kRoot, all);
      break;
    case kScatter:
      MPI_Scatter(send, n, MPI_FLOAT, receive, n, MPI_FLOAT, kRoot, all);
      break;
    case kSendReceive:
      MPI_Sendrecv(send, n, MPI_FLOAT, (rank + 1) % ranks, 0, receive, n, MPI_FLOAT,
                   (rank + ranks - 1) % ranks, 0, all, MPI_STATUS_IGNORE);
      break;
    case kBarrier:
      MPI_Barrier(all);
      break;
  }
}
