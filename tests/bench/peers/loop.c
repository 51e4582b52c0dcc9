/* SPDX-License-Identifier: Apache-2.0
 *
 * The loop that measures an all-reduce, the same source for every library (library.h).
 * gloo_loop.py is this loop in Python: change both.
 *
 * usage: PROGRAM TYPES ROUNDS ROUND_MS BYTES...     TYPES: fp32,fp16,bf16 or some of them
 *
 * For each type and size: rounds of growing length warm up, until one takes ROUND_MS / 2; then
 * ROUNDS rounds of that length are measured, each begun by all ranks together. A round takes as
 * long as it does for the rank that takes longest: where ranks outnumber cores, one may have been
 * out while the others did its share. Rank 0 prints one JSON object a line: first the library, then
 * the sizes. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "library.h"

enum { kMostRanks = 256, kMostRounds = 1000, kPeriod = 7, kPage = 4096 };

static const char* const kTypeNames[] = {"fp32", "fp16", "bf16"};

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

static size_t CountWrong(const void* receive, size_t count, enum Type type) {
  uint32_t right[kPeriod];
  for (size_t i = 0; i < kPeriod; ++i) {
    uint32_t sum = 0;
    for (int rank = 0; rank < LibraryRanks(); ++rank) sum += Given(rank, i);
    right[i] = Number(type, sum);
  }
  size_t wrong = 0;
  for (size_t i = 0; i < count; ++i) {
    uint32_t bits = 0;
    memcpy(&bits, (const char*)receive + i * SizeOf(type), SizeOf(type));
    wrong += bits != right[i % kPeriod];
  }
  return wrong;
}

/* The largest of all ranks' numbers, on all ranks. None returns before every rank has come. */
static double Largest(double mine) {
  float own[kMostRanks] = {0};
  float all[kMostRanks] = {0};
  own[LibraryRank()] = (float)mine;
  LibraryAllReduce(own, all, (size_t)LibraryRanks(), kFp32);
  float largest = 0;
  for (int rank = 0; rank < LibraryRanks(); ++rank)
    largest = all[rank] > largest ? all[rank] : largest;
  return largest;
}

/* Seconds that so many all-reduces took. */
static double Round(const void* send, void* receive, size_t count, enum Type type, int iterations) {
  Largest(0);
  const double begin = Now();
  for (int i = 0; i < iterations; ++i) LibraryAllReduce(send, receive, count, type);
  return Largest(Now() - begin);
}

/* A power of two of iterations that take half of the time or more. The shortest of three rounds
 * says so: one may have been disturbed, and the first is what warms up. */
static int Iterations(const void* send, void* receive, size_t count, enum Type type,
                      double round_seconds) {
  for (int iterations = 1;; iterations *= 2) {
    double shortest = Round(send, receive, count, type, iterations);
    for (int i = 0; i < 2; ++i) {
      const double seconds = Round(send, receive, count, type, iterations);
      shortest = seconds < shortest ? seconds : shortest;
    }
    if (shortest >= round_seconds / 2) return iterations;
  }
}

static int Compare(const void* left, const void* right) {
  const double difference = *(const double*)left - *(const double*)right;
  return (difference > 0) - (difference < 0);
}

static void Measure(const void* send, void* receive, size_t bytes, enum Type type, int rounds,
                    double round_seconds) {
  const size_t count = bytes / SizeOf(type);
  memset(receive, 0xff, bytes);
  const int iterations = Iterations(send, receive, count, type, round_seconds);
  double seconds[kMostRounds];
  for (int i = 0; i < rounds; ++i) {
    seconds[i] = Round(send, receive, count, type, iterations) / iterations;
  }
  qsort(seconds, (size_t)rounds, sizeof seconds[0], Compare);
  const double wrong = Largest((double)CountWrong(receive, count, type));
  if (LibraryRank() != 0) return;
  printf(
      "{\"type\": \"%s\", \"bytes\": %zu, \"iterations\": %d, \"best_us\": %.3f, "
      "\"median_us\": %.3f, \"wrong\": %.0f}\n",
      kTypeNames[type], bytes, iterations, seconds[0] * 1e6, seconds[rounds / 2] * 1e6, wrong);
}

int main(int argc, char** argv) {
  LibraryOpen(&argc, &argv);
  const int rounds = argc > 4 ? atoi(argv[2]) : 0;
  if (rounds < 1 || rounds > kMostRounds || LibraryRanks() > kMostRanks) {
    fprintf(stderr, "usage: %s TYPES ROUNDS ROUND_MS BYTES...\n", argv[0]);
    return 2;
  }
  const double round_seconds = atof(argv[3]) / 1e3;
  size_t largest = 0;
  for (int i = 4; i < argc; ++i) {
    const size_t bytes = strtoull(argv[i], NULL, 10);
    if (bytes > largest) largest = bytes;
  }
  const size_t room = (largest + kPage) / kPage * kPage;
  void* const send = LibraryMemory(room);
  void* const receive = LibraryMemory(room);
  if (send == NULL || receive == NULL) {
    fprintf(stderr, "no memory for two buffers of %zu bytes\n", room);
    return 1;
  }
  if (LibraryRank() == 0) {
    printf("{\"library\": \"%s\", \"ranks\": %d}\n", LibraryName(), LibraryRanks());
  }
  for (enum Type type = kFp32; type <= kBf16; ++type) {
    if (strstr(argv[1], kTypeNames[type]) == NULL) continue;
    Fill(send, largest / SizeOf(type), type);
    for (int i = 4; i < argc; ++i) {
      Measure(send, receive, strtoull(argv[i], NULL, 10), type, rounds, round_seconds);
    }
  }
  fflush(stdout);
  LibraryClose();
  return 0;
}
