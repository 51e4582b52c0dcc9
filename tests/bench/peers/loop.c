/* SPDX-License-Identifier: Apache-2.0
 *
 * The loop that measures collectives, the same source for every library (library.h).
 * gloo_loop.py is this loop in Python: change both.
 *
 * usage: PROGRAM TYPES ROUNDS ROUND_MS COLLECTIVE:BYTES...
 *   TYPES: fp32,fp16,bf16 or some of them
 *   COLLECTIVE:BYTES: for example all_reduce:1024; the bytes of a block (library.h)
 *
 * For each type, collective and size: rounds of growing length warm up, until one takes
 * ROUND_MS / 2; then ROUNDS rounds of that length are measured, each begun by all ranks together. A
 * round takes as long as it does for the rank that takes longest: where ranks outnumber cores, one
 * may have been out while the others did its share. All ranks check what they have received. Rank 0
 * prints one JSON object a line: first the library, then the sizes. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "library.h"

/* The blocks of 8 ranks differ by less than a period of values, and their counts are powers of two:
 * a block in another's place shows. */
enum { kMostRanks = 256, kMostRounds = 1000, kPeriod = 11, kPage = 4096 };

static const char* const kTypeNames[] = {"fp32", "fp16", "bf16"};

static const char* const kCollectiveNames[] = {
    "all_reduce", "reduce", "broadcast", "all_gather",   "reduce_scatter",
    "all_to_all", "gather", "scatter",   "send_receive", "barrier"};

/* One measurement: a collective, and the values in a block. */
struct Work {
  enum Collective collective;
  enum Type type;
  size_t count;
  const void* send;
  void* receive;
};

static double Now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static size_t SizeOf(enum Type type) { return type == kFp32 ? 4 : 2; }

/* The bits of a whole number from 1 to 255, which every type holds exactly. */
static uint32_t Number(enum Type type, uint32_t value) {
  if (type == kFp16) {
    uint32_t exponent = 0;
    while (value >> (exponent + 1) != 0) ++exponent;
    return (exponent + 15) << 10 | ((value << (10 - exponent)) & 0x3ff);
  }
  const float number = (float)value;
  uint32_t bits;
  memcpy(&bits, &number, sizeof bits);
  return type == kFp32 ? bits : bits >> 16;
}

/* What a rank gives at an index: it depends on both, so that a shifted or missing input shows. */
static uint32_t Given(int rank, size_t index) {
  return (uint32_t)rank + 1 + (uint32_t)(index % kPeriod);
}

static void Fill(void* send, size_t count, enum Type type) {
  const int rank = LibraryRank();
  for (size_t i = 0; i < count; ++i) {
    const uint32_t bits = Number(type, Given(rank, i));
    memcpy((char*)send + i * SizeOf(type), &bits, SizeOf(type));
  }
}

/* Blocks that a rank's larger buffer has. */
static size_t Blocks(enum Collective collective) {
  const size_t ranks = (size_t)LibraryRanks();
  switch (collective) {
    case kAllGather:
    case kReduceScatter:
    case kAllToAll:
    case kGather:
    case kScatter:
      return ranks;
    default:
      return 1;
  }
}

/* Blocks that this rank receives. */
static size_t Received(enum Collective collective) {
  const int is_root = LibraryRank() == kRoot;
  switch (collective) {
    case kBarrier:
      return 0;
    case kReduce:
    case kGather:
      return is_root ? Blocks(collective) : 0;
    case kBroadcast:
      return is_root ? 0 : 1;
    case kAllGather:
    case kAllToAll:
      return Blocks(collective);
    default:
      return 1;
  }
}

/* The value that belongs at an index of a block that this rank has received. */
static uint32_t Right(const struct Work* work, size_t block, size_t index) {
  const int rank = LibraryRank();
  const int ranks = LibraryRanks();
  const size_t own = (size_t)rank * work->count + index;
  uint32_t sum = 0;
  switch (work->collective) {
    case kBroadcast:
      return Given(kRoot, index);
    case kAllGather:
    case kGather:
      return Given((int)block, index);
    case kAllToAll:
      return Given((int)block, own);
    case kScatter:
      return Given(kRoot, own);
    case kSendReceive:
      return Given((rank + ranks - 1) % ranks, index);
    case kReduceScatter:
      for (int other = 0; other < ranks; ++other) sum += Given(other, own);
      return sum;
    default:
      for (int other = 0; other < ranks; ++other) sum += Given(other, index);
      return sum;
  }
}

static size_t CountWrong(const struct Work* work) {
  const size_t size = SizeOf(work->type);
  size_t wrong = 0;
  for (size_t block = 0; block < Received(work->collective); ++block) {
    uint32_t right[kPeriod];
    for (size_t i = 0; i < kPeriod; ++i) right[i] = Number(work->type, Right(work, block, i));
    const char* const from = (const char*)work->receive + block * work->count * size;
    for (size_t i = 0; i < work->count; ++i) {
      uint32_t bits = 0;
      memcpy(&bits, from + i * size, size);
      wrong += bits != right[i % kPeriod];
    }
  }
  return wrong;
}

static void Run(const struct Work* work) {
  LibraryRun(work->collective, work->send, work->receive, work->count, work->type);
}

/* The largest of all ranks' numbers, on all ranks. None returns before every rank has come. */
static double Largest(double mine) {
  float own[kMostRanks] = {0};
  float all[kMostRanks] = {0};
  own[LibraryRank()] = (float)mine;
  LibraryRun(kAllReduce, own, all, (size_t)LibraryRanks(), kFp32);
  float largest = 0;
  for (int rank = 0; rank < LibraryRanks(); ++rank)
    largest = all[rank] > largest ? all[rank] : largest;
  return largest;
}

/* Whether a barrier lets this rank go before the last one, which comes late, has come. */
static size_t LeftEarly(const struct Work* barrier) {
  const struct timespec late = {0, 5000000};
  const double begin = Now();
  Largest(0);
  if (LibraryRank() == LibraryRanks() - 1) nanosleep(&late, NULL);
  Run(barrier);
  return Now() - begin < (double)late.tv_nsec * 1e-9;
}

/* Seconds that so many calls took. */
static double Round(const struct Work* work, int iterations) {
  Largest(0);
  const double begin = Now();
  for (int i = 0; i < iterations; ++i) Run(work);
  return Largest(Now() - begin);
}

/* A power of two of iterations that take half of the time or more. The shortest of three rounds
 * says so: one may have been disturbed, and the first is what warms up. */
static int Iterations(const struct Work* work, double round_seconds) {
  for (int iterations = 1;; iterations *= 2) {
    double shortest = Round(work, iterations);
    for (int i = 0; i < 2; ++i) {
      const double seconds = Round(work, iterations);
      shortest = seconds < shortest ? seconds : shortest;
    }
    if (shortest >= round_seconds / 2) return iterations;
  }
}

static int Compare(const void* left, const void* right) {
  const double difference = *(const double*)left - *(const double*)right;
  return (difference > 0) - (difference < 0);
}

static void Measure(const struct Work* work, int rounds, double round_seconds) {
  const size_t bytes = work->count * SizeOf(work->type);
  memset(work->receive, 0xff, Blocks(work->collective) * bytes);
  const int iterations = Iterations(work, round_seconds);
  double seconds[kMostRounds];
  for (int i = 0; i < rounds; ++i) seconds[i] = Round(work, iterations) / iterations;
  qsort(seconds, (size_t)rounds, sizeof seconds[0], Compare);
  const double wrong =
      Largest((double)(work->collective == kBarrier ? LeftEarly(work) : CountWrong(work)));
  if (LibraryRank() != 0) return;
  printf(
      "{\"collective\": \"%s\", \"type\": \"%s\", \"bytes\": %zu, \"iterations\": %d, "
      "\"best_us\": %.3f, \"median_us\": %.3f, \"wrong\": %.0f}\n",
      kCollectiveNames[work->collective], kTypeNames[work->type], bytes, iterations,
      seconds[0] * 1e6, seconds[rounds / 2] * 1e6, wrong);
}

/* Reads COLLECTIVE:BYTES; returns 0 if it is not that. */
static int Parse(const char* text, enum Collective* collective, size_t* bytes) {
  const char* const colon = strchr(text, ':');
  if (colon == NULL) return 0;
  for (int i = 0; i <= kBarrier; ++i) {
    const size_t length = strlen(kCollectiveNames[i]);
    if ((size_t)(colon - text) != length || strncmp(text, kCollectiveNames[i], length) != 0) {
      continue;
    }
    *collective = (enum Collective)i;
    *bytes = strtoull(colon + 1, NULL, 10);
    return 1;
  }
  return 0;
}

int main(int argc, char** argv) {
  LibraryOpen(&argc, &argv);
  const int rounds = argc > 4 ? atoi(argv[2]) : 0;
  int usable = rounds >= 1 && rounds <= kMostRounds && LibraryRanks() <= kMostRanks;
  struct Work work = {kAllReduce, kFp32, 0, NULL, NULL};
  size_t bytes = 0;
  size_t largest = 0;
  for (int i = 4; usable && i < argc; ++i) {
    usable = Parse(argv[i], &work.collective, &bytes);
    const size_t buffer = usable ? Blocks(work.collective) * bytes : 0;
    if (buffer > largest) largest = buffer;
  }
  if (!usable) {
    fprintf(stderr, "usage: %s TYPES ROUNDS ROUND_MS COLLECTIVE:BYTES...\n", argv[0]);
    return 2;
  }
  const double round_seconds = atof(argv[3]) / 1e3;
  const size_t room = (largest + kPage) / kPage * kPage;
  void* const send = LibraryMemory(room);
  work.send = send;
  work.receive = LibraryMemory(room);
  if (send == NULL || work.receive == NULL) {
    fprintf(stderr, "no memory for two buffers of %zu bytes\n", room);
    return 1;
  }
  if (LibraryRank() == 0) {
    printf("{\"library\": \"%s\", \"ranks\": %d}\n", LibraryName(), LibraryRanks());
  }
  for (work.type = kFp32; work.type <= kBf16; ++work.type) {
    if (strstr(argv[1], kTypeNames[work.type]) == NULL) continue;
    Fill(send, largest / SizeOf(work.type), work.type);
    for (int i = 4; i < argc; ++i) {
      Parse(argv[i], &work.collective, &bytes);
      work.count = bytes / SizeOf(work.type);
      Measure(&work, rounds, round_seconds);
    }
  }
  fflush(stdout);
  LibraryClose();
  return 0;
}
