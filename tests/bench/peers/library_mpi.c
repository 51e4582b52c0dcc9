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

void LibraryAllReduce(const void* send, void* receive, size_t count, enum Type type) {
  if (type != kFp32) {
    fprintf(stderr, "MPI has no 16-bit floats\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  MPI_Allreduce(send, receive, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}
