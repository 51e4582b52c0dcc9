/* SPDX-License-Identifier: Apache-2.0
 *
 * All-reduces, one after the other, whose every sum is checked, with a line for each: when it began
 * and ended (CLOCK_MONOTONIC, seconds) and what each rail has sent by then.
 *
 * usage: probe BYTES      until rank 0 gets SIGTERM
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "railhead/railhead.h"

enum { kMostRails = 64, kPeriod = 1009 };

static rhComm_t comm;
static volatile sig_atomic_t told_to_end;

static void OnSigterm(int number) {
  (void)number;
  told_to_end = 1;
}

static void Check(rhResult_t result) {
  if (result == rhSuccess) return;
  fprintf(stderr, "probe: %s: %s\n", rhGetErrorString(result), rhGetLastError(comm));
  exit(1);
}

static double Now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Sums of these are exact. */
static float Value(size_t index, int operation, int rank) {
  return (float)((index + (size_t)operation * 31 + (size_t)rank * 97) % kPeriod);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const size_t count = strtoull(argv[1], NULL, 10) / sizeof(float);
  float* const send = malloc(count * sizeof(float));
  float* const receive = malloc(count * sizeof(float));
  if (send == NULL || receive == NULL || count < 2) return 2;
  int rank = 0;
  int ranks = 0;
  Check(rhCommInitFromEnv(&comm));
  Check(rhCommUserRank(comm, &rank));
  Check(rhCommCount(comm, &ranks));
  rhCommInfo_t info;
  info.struct_size = sizeof info;
  Check(rhCommGetInfo(comm, &info));
  /* The other ranks end with rank 0: theirs is the default action, so that nothing is left behind. */
  struct sigaction action = {.sa_handler = OnSigterm, .sa_flags = SA_RESTART};
  if (rank == 0 && sigaction(SIGTERM, &action, NULL) != 0) return 2;
  for (int operation = 0;; ++operation) {
    for (size_t i = 1; i < count; ++i) send[i] = Value(i, operation, rank);
    /* All ranks end together: rank 0 says when. */
    send[0] = rank == 0 && told_to_end ? 1.0F : 0.0F;
    /* In place every other time. */
    float* const into = operation % 2 == 0 ? receive : send;
    const double begin = Now();
    Check(rhAllReduce(send, into, count, rhFloat32, rhSum, comm, NULL));
    const double done = Now();
    for (size_t i = 1; i < count; ++i) {
      float sum = 0;
      for (int r = 0; r < ranks; ++r) sum += Value(i, operation, r);
      if (into[i] == sum) continue;
      fprintf(stderr, "probe: operation %d: value %zu is %g, not %g\n", operation, i,
              (double)into[i], (double)sum);
      return 1;
    }
    printf("%.6f %.6f", begin, done);
    for (int rail = 0; rail < info.rails && rail < kMostRails; ++rail) {
      rhRailInfo_t its;
      its.struct_size = sizeof its;
      Check(rhCommRailInfo(comm, rail, &its));
      printf(" %llu", (unsigned long long)its.tx_bytes);
    }
    printf("\n");
    fflush(stdout);
    if (into[0] != 0) break;
  }
  Check(rhCommDestroy(comm));
  return 0;
}
