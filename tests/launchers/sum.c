/* SPDX-License-Identifier: Apache-2.0
 *
 * A rank that adds a number over its job: sum NUMBER [WHERE]. Every rank prints "rank 1 of 2: sum
 * 8"; the ranks of a job pass the same number, so the sum shows with which ranks it has met. WHERE
 * is "before" or "after": in its first life, rank 1 exits with 1 before or after it has joined the
 * job. With -DUSE_MPI it uses MPI, else the C API.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef USE_MPI
#include "open_mpi.h"
#else
#include "railhead/railhead.h"
#endif

static void DieInFirstLife(int argc, char** argv, const char* where) {
  const char* life = getenv("TORCHELASTIC_RESTART_COUNT");
  const char* rank = getenv("RANK");
  const char* folder = getenv("FIRST_LIFE");
  if (argc < 3 || strcmp(argv[2], where) != 0 || life == NULL || rank == NULL) return;
  if (strcmp(rank, "1") != 0) return;
  /* A file that the test has made is there in the first life only. */
  if (folder != NULL && remove(folder) != 0) return;
  if (folder == NULL && strcmp(life, "0") != 0) return;
  exit(1);
}

int main(int argc, char** argv) {
  double sum = 0;
  double number = 0;
  int rank = 0;
  int ranks = 0;
  if (argc < 2) return 2;
  number = atof(argv[1]);
  DieInFirstLife(argc, argv, "before");
#ifdef USE_MPI
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  DieInFirstLife(argc, argv, "after");
  MPI_Allreduce(&number, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
#else
  {
    rhComm_t comm = NULL;
    if (rhCommInitFromEnv(&comm) != rhSuccess) {
      fprintf(stderr, "error: %s\n", rhGetLastError(NULL));
      return 1;
    }
    rhCommUserRank(comm, &rank);
    rhCommCount(comm, &ranks);
    DieInFirstLife(argc, argv, "after");
    if (rhAllReduce(&number, &sum, 1, rhFloat64, rhSum, comm, NULL) != rhSuccess) {
      fprintf(stderr, "error: %s\n", rhGetLastError(comm));
      return 1;
    }
    rhCommDestroy(comm);
  }
#endif
  printf("rank %d of %d: sum %g\n", rank, ranks, sum);
  return 0;
}
