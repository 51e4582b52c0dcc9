/* SPDX-License-Identifier: Apache-2.0
 *
 * A rank that does what it reads from stdin, a command a line, and prints `WORDS: SECONDS` when it
 * has done it. Communicators are numbered from 0, the one of the job; messages have a known
 * content, which receivers check.
 *
 *   split                 makes the next communicator, of all ranks
 *   shrink C RANK         makes the next communicator, of the ranks of C without this one; C may have failed
 *   grow C FILE           makes the next communicator, of the ranks of C and a new one, which waits for the id in the file
 *   send C BYTES          to the other rank of two
 *   receive C BYTES
 *   broadcast C BYTES     from rank 0
 *   all_reduce C BYTES
 *   barrier C
 *   fail C                an all-reduce that must fail
 *   until_failure C BYTES all-reduces until one fails, at `WORDS failed: TIME` of CLOCK_MONOTONIC; stderr has the error
 *   isend C BYTES PEER    starts a transfer, and waits for it; it may fail, as above
 *   ireceive C BYTES PEER PEER -1: from any rank
 *   cycle C COUNT BYTES   makes and ends COUNT communicators of all ranks of C, in their order or the reverse, each with
 *                         an all-reduce and a transfer around the ring, of BYTES and less
 *   compute MILLISECONDS  stays away from the library
 *
 * usage: commanded             until the end of stdin
 *        commanded FILE RANKS  as the new rank of a communicator that grows to so many
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "railhead/railhead.h"

enum { kMostCommunicators = 64, kMostBytes = 64 << 20, kPeriod = 251 };

static rhComm_t comms[kMostCommunicators];
static int messages[kMostCommunicators]; /* so far, for their content */
static int communicators = 1;
static int rank;
static uint8_t* sent;
static uint8_t* received;

static void Check(rhResult_t result, rhComm_t comm) {
  if (result == rhSuccess) return;
  fprintf(stderr, "commanded: %s: %s\n", rhGetErrorString(result), rhGetLastError(comm));
  exit(1);
}

static double Now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static uint8_t Value(size_t index, int message) {
  return (uint8_t)((index + (size_t)message * 31) % kPeriod);
}

static void CheckReceived(const char* words, size_t bytes, int message, int factor) {
  for (size_t i = 0; i < bytes; ++i) {
    const uint8_t want = (uint8_t)(factor * Value(i, message));
    if (received[i] == want) continue;
    fprintf(stderr, "commanded: %s: byte %zu is %d, not %d\n", words, i, received[i], want);
    exit(1);
  }
}

static rhComm_t* Next(void) {
  if (communicators == kMostCommunicators) exit(2);
  return &comms[communicators++];
}

/* Makes the next communicator. */
static void Make(const char* words, int number, int excluded) {
  const double begin = Now();
  rhComm_t* const made = Next();
  Check(excluded < 0 ? rhCommSplit(comms[number], 0, rank, made, NULL)
                     : rhCommShrink(comms[number], &excluded, 1, made, NULL),
        comms[number]);
  printf("%s: %.3f\n", words, Now() - begin);
}

static void Failed(const char* words, rhComm_t comm) {
  printf("%s failed: %.3f\n", words, Now());
  fprintf(stderr, "commanded: %s: %s\n", words, rhGetLastError(comm));
  fflush(stderr);
}

static void UntilFailure(const char* words, rhComm_t comm, size_t bytes) {
  while (rhAllReduce(sent, received, bytes, rhUint8, rhMax, comm, NULL) == rhSuccess) {
  }
  Failed(words, comm);
}

static void Transfer(const char* words, const char* verb, rhComm_t comm, size_t bytes, int peer) {
  rhRequest_t request = NULL;
  const double begin = Now();
  const int sends = strcmp(verb, "isend") == 0;
  for (size_t i = 0; i < bytes; ++i) sent[i] = Value(i, 0);
  rhResult_t result = sends ? rhIsend(sent, bytes, rhUint8, peer, 0, comm, &request)
                            : rhIrecv(received, bytes, rhUint8, peer < 0 ? RH_ANY_SOURCE : peer, 0, comm, &request);
  const int started = result == rhSuccess;
  if (started) result = rhRequestWait(request);
  if (result != rhSuccess) {
    Failed(words, started ? NULL : comm);
    rhRequestFree(request);
    return;
  }
  rhRequestFree(request);
  printf("%s: %.3f\n", words, Now() - begin);
  if (!sends) CheckReceived(words, bytes, 0, 1);
}

/* Passes rank 0's id to all ranks in a file. */
static rhUniqueId IdIn(const char* file, int writes) {
  rhUniqueId id;
  char whole[300];
  FILE* stream;
  snprintf(whole, sizeof whole, "%s.new", file);
  if (writes) {
    Check(rhGetUniqueId(&id), NULL);
    stream = fopen(whole, "wb");
    if (stream == NULL || fwrite(&id, sizeof id, 1, stream) != 1 || fclose(stream) != 0 ||
        rename(whole, file) != 0) {
      exit(2);
    }
    return id;
  }
  while ((stream = fopen(file, "rb")) == NULL) {
    const struct timespec pause = {0, 10000000};
    nanosleep(&pause, NULL);
  }
  if (fread(&id, sizeof id, 1, stream) != 1) exit(2);
  fclose(stream);
  return id;
}

/* Makes the next communicator with one more rank. */
static void Grow(const char* words, int number, const char* file) {
  const double begin = Now();
  int count = 0;
  Check(rhCommCount(comms[number], &count), comms[number]);
  Check(rhCommGrow(comms[number], count + 1, IdIn(file, rank == 0), -1, Next(), NULL), comms[number]);
  printf("%s: %.3f\n", words, Now() - begin);
}

static void Do(const char* words, const char* verb, int number, size_t bytes) {
  rhComm_t const comm = comms[number];
  const int message = messages[number]++;
  const int peer = 1 - rank;
  for (size_t i = 0; i < bytes; ++i) sent[i] = Value(i, message);
  const double begin = Now();
  if (strcmp(verb, "send") == 0) {
    Check(rhSend(sent, bytes, rhUint8, peer, comm, NULL), comm);
  } else if (strcmp(verb, "receive") == 0) {
    Check(rhRecv(received, bytes, rhUint8, peer, comm, NULL), comm);
  } else if (strcmp(verb, "broadcast") == 0) {
    Check(rhBroadcast(sent, received, bytes, rhUint8, 0, comm, NULL), comm);
  } else if (strcmp(verb, "all_reduce") == 0) {
    Check(rhAllReduce(sent, received, bytes, rhUint8, rhSum, comm, NULL), comm);
  } else if (strcmp(verb, "fail") == 0) {
    if (rhAllReduce(sent, received, 1, rhUint8, rhSum, comm, NULL) == rhSuccess) exit(1);
    fprintf(stderr, "commanded: %s\n", rhGetLastError(comm));
  } else {
    Check(rhBarrier(comm, NULL), comm);
  }
  printf("%s: %.3f\n", words, Now() - begin);
  if (strcmp(verb, "receive") == 0 || strcmp(verb, "broadcast") == 0) {
    CheckReceived(words, bytes, message, 1);
  }
  int count = 0;
  Check(rhCommCount(comm, &count), comm);
  if (strcmp(verb, "all_reduce") == 0) CheckReceived(words, bytes, message, count);
}

/* Two communicators live at a time: the older one ends first, or every third time the newer one. */
static void Cycle(const char* words, int number, int cycles, size_t most) {
  const double begin = Now();
  rhComm_t older = NULL;
  int key = 0;
  int count = 0;
  Check(rhCommUserRank(comms[number], &key), comms[number]);
  Check(rhCommCount(comms[number], &count), comms[number]);
  for (int cycle = 0; cycle < cycles; ++cycle) {
    rhComm_t comm = NULL;
    rhRequest_t requests[2];
    int own = 0;
    const size_t bytes = most >> cycle % 14;
    Check(rhCommSplit(comms[number], 0, cycle % 2 == 0 ? key : count - key, &comm, NULL), comms[number]);
    Check(rhCommUserRank(comm, &own), comm);
    for (size_t i = 0; i < bytes; ++i) sent[i] = Value(i, cycle);
    Check(rhAllReduce(sent, received, bytes, rhUint8, rhSum, comm, NULL), comm);
    CheckReceived(words, bytes, cycle, count);
    Check(rhIrecv(received, bytes, rhUint8, (own + count - 1) % count, cycle, comm, &requests[0]), comm);
    Check(rhIsend(sent, bytes, rhUint8, (own + 1) % count, cycle, comm, &requests[1]), comm);
    for (int i = 0; i < 2; ++i) {
      Check(rhRequestWait(requests[i]), NULL);
      rhRequestFree(requests[i]);
    }
    CheckReceived(words, bytes, cycle, 1);
    rhComm_t const ends = cycle % 3 == 0 ? comm : older;
    if (cycle % 3 != 0) older = comm;
    if (ends != NULL) Check(rhCommDestroy(ends), NULL);
  }
  if (older != NULL) Check(rhCommDestroy(older), NULL);
  printf("%s: %.3f\n", words, Now() - begin);
}

int main(int argc, char** argv) {
  char line[512];
  sent = malloc(kMostBytes);
  received = malloc(kMostBytes);
  if (sent == NULL || received == NULL) return 2;
  if (argc == 3) {
    rhConfig_t config = RH_CONFIG_INITIALIZER;
    const int ranks = atoi(argv[2]);
    communicators = 0;
    Check(rhCommGrow(NULL, ranks, IdIn(argv[1], 0), ranks - 1, Next(), &config), NULL);
  } else {
    Check(rhCommInitFromEnv(&comms[0]), NULL);
  }
  Check(rhCommUserRank(comms[0], &rank), comms[0]);
  printf("ready: 0\n");
  fflush(stdout);
  while (fgets(line, sizeof line, stdin) != NULL) {
    char verb[32];
    char file[256];
    long number = 0;
    long bytes = 0;
    long peer = 0;
    line[strcspn(line, "\n")] = '\0';
    if (sscanf(line, "%31s %ld %ld %ld", verb, &number, &bytes, &peer) < 1) return 2;
    if (strcmp(verb, "split") == 0 || strcmp(verb, "shrink") == 0) {
      Make(line, (int)number, verb[1] == 'h' ? (int)bytes : -1);
    } else if (sscanf(line, "grow %ld %255s", &number, file) == 2) {
      Grow(line, (int)number, file);
    } else if (strcmp(verb, "cycle") == 0) {
      if (number < 0 || number >= communicators || peer < 0 || peer > kMostBytes) return 2;
      Cycle(line, (int)number, (int)bytes, (size_t)peer);
    } else if (strcmp(verb, "compute") == 0) {
      const struct timespec pause = {number / 1000, number % 1000 * 1000000};
      nanosleep(&pause, NULL);
      printf("%s: %.3f\n", line, (double)number / 1000);
    } else {
      if (number < 0 || number >= communicators || bytes < 0 || bytes > kMostBytes) return 2;
      rhComm_t const comm = comms[number];
      if (strcmp(verb, "until_failure") == 0) {
        UntilFailure(line, comm, (size_t)bytes);
      } else if (verb[0] == 'i') {
        Transfer(line, verb, comm, (size_t)bytes, (int)peer);
      } else {
        Do(line, verb, (int)number, (size_t)bytes);
      }
    }
    fflush(stdout);
  }
  while (communicators > 0) rhCommDestroy(comms[--communicators]); /* some have failed */
  return 0;
}
