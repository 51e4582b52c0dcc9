/* SPDX-License-Identifier: Apache-2.0
 *
 * MPI_Send and MPI_Recv. Built with Open MPI's compiler wrapper, the program runs over Open MPI and
 * over Railhead's libmpi.so.40; MPICH needs a build of its own. MPI's own error handler ends the
 * job. */
#include <mpi.h>
#include <string.h>

#include "endpoint.h"

enum { kTag = 0 };

static char name[MPI_MAX_LIBRARY_VERSION_STRING];
static int rank;
static int ranks;

void EndpointOpen(int* argc, char*** argv) {
  int length = 0;
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Get_library_version(name, &length);
  /* "Open MPI v4.1.4, package: ...", "Open MPI v4.1.0, its interface served by Railhead 0.1.0" or
   * "MPICH Version:\t4.0.2\n...". */
  char* const package = strstr(name, ", package");
  if (package != NULL) *package = '\0';
  name[strcspn(name, "\n")] = '\0';
  for (char* c = name; *c != '\0'; ++c) {
    if (*c == '\t') *c = ' ';
  }
}

void EndpointClose(void) { MPI_Finalize(); }

const char* EndpointName(void) { return name; }
int EndpointRank(void) { return rank; }
int EndpointRanks(void) { return ranks; }

void EndpointSend(const void* data, size_t bytes) {
  MPI_Send(data, (int)bytes, MPI_BYTE, 1 - rank, kTag, MPI_COMM_WORLD);
}

void EndpointReceive(void* data, size_t bytes) {
  MPI_Recv(data, (int)bytes, MPI_BYTE, 1 - rank, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
