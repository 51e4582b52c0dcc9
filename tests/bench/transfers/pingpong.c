/* SPDX-License-Identifier: Apache-2.0
 *
 * Ping-pong of two ranks over one library (endpoint.h): the one-way time, which is half of a round
 * trip, for each size. Rank 0 prints a JSON object with the library, then one for each size.
 *
 * All messages are checked. Before the timed rounds of a size, some exchanges compare every byte,
 * and the bytes after the message. In timed rounds, the first and the last 8 bytes of a message are
 * its number, which the receiver compares; this costs some nanoseconds, the same for each library.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "endpoint.h"

enum {
  kPage = 4096,
  kGuard = 64,    /* bytes after a message that must not change */
  kChecks = 4,    /* exchanges of each size that compare every byte */
  kMinRounds = 5, /* rounds that are measured also if they take too long */
  kOvertime = 3,  /* how many times the planned time all rounds of a size may take */
  kMaxRounds = 1000,
  kMaxIterations = 1 << 20,
  kMinBytes = 8,
  kMaxBytes = 1 << 30
};

static unsigned char* sent;
static unsigned char* received;
static int rank;
static uint64_t number; /* of the last exchange; equal on both ranks */
static uint64_t wrong;  /* bytes or message numbers on this rank since the size began */

static double Now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Returns the number that is in a message of a rank: no two messages of a run have the same. */
static uint64_t Mark(int from) { return (number * 2 + (uint64_t)from) * 0x9e3779b97f4a7c15U; }

static void WriteMark(size_t bytes) {
  const uint64_t mark = Mark(rank);
  memcpy(sent, &mark, sizeof mark);
  memcpy(sent + bytes - sizeof mark, &mark, sizeof mark);
}

static void CheckMark(size_t bytes) {
  const uint64_t mark = Mark(1 - rank);
  wrong += memcmp(received, &mark, sizeof mark) != 0;
  wrong += memcmp(received + bytes - sizeof mark, &mark, sizeof mark) != 0;
}

static void Exchange(size_t bytes) {
  ++number;
  if (rank == 0) {
    WriteMark(bytes);
    EndpointSend(sent, bytes);
    EndpointReceive(received, bytes);
    CheckMark(bytes);
  } else {
    EndpointReceive(received, bytes);
    CheckMark(bytes);
    WriteMark(bytes);
    EndpointSend(sent, bytes);
  }
}

/* Returns a byte of a message's pattern, which depends on the message and on the position. */
static unsigned char Pattern(int from, size_t index) {
  const uint64_t value = (Mark(from) ^ index) * 0xff51afd7ed558ccdU;
  return (unsigned char)(value >> 56);
}

/* Exchanges messages and compares every byte. */
static void CheckAll(size_t bytes) {
  ++number;
  for (size_t i = 0; i < bytes; ++i) {
    sent[i] = Pattern(rank, i);
    received[i] = (unsigned char)~Pattern(1 - rank, i);
  }
  memset(received + bytes, 0xa5, kGuard);
  if (rank == 0) EndpointSend(sent, bytes);
  EndpointReceive(received, bytes);
  if (rank == 1) EndpointSend(sent, bytes);
  for (size_t i = 0; i < bytes; ++i) wrong += received[i] != Pattern(1 - rank, i);
  for (size_t i = bytes; i < bytes + kGuard; ++i) wrong += received[i] != 0xa5;
}

/* Sends a value of rank 0 to rank 1, and one back; returns the value of the other rank. Both ranks
 * are then at the same point. */
static uint64_t Agree(uint64_t mine) {
  uint64_t other = 0;
  if (rank == 0) EndpointSend(&mine, sizeof mine);
  EndpointReceive(&other, sizeof other);
  if (rank == 1) EndpointSend(&mine, sizeof mine);
  return other;
}

/* Rank 0: returns the one-way seconds of a round. */
static double Round(size_t bytes, uint64_t iterations) {
  Agree(iterations);
  const double begin = Now();
  for (uint64_t i = 0; i < iterations; ++i) Exchange(bytes);
  return (Now() - begin) / (double)iterations / 2;
}

/* Rank 0: returns a power of two of iterations that take half of the time or more, by the shortest
 * of three rounds: one may have been disturbed, and the first one warms up. */
static uint64_t Iterations(size_t bytes, double round_seconds) {
  for (uint64_t iterations = 1;; iterations *= 2) {
    double shortest = Round(bytes, iterations);
    for (int i = 0; i < 2; ++i) {
      const double seconds = Round(bytes, iterations);
      shortest = seconds < shortest ? seconds : shortest;
    }
    if (shortest * 2 * (double)iterations >= round_seconds / 2 || iterations >= kMaxIterations) {
      return iterations;
    }
  }
}

/* Rank 1: answers rounds until rank 0 ends the size. */
static void Answer(size_t bytes) {
  for (;;) {
    const uint64_t iterations = Agree(0);
    if (iterations == 0) return;
    for (uint64_t i = 0; i < iterations; ++i) Exchange(bytes);
  }
}

static int Compare(const void* left, const void* right) {
  const double difference = *(const double*)left - *(const double*)right;
  return (difference > 0) - (difference < 0);
}

static void Measure(size_t bytes, int max_rounds, double round_seconds) {
  wrong = 0;
  int rounds = 0;
  for (int i = 0; i < kChecks; ++i) CheckAll(bytes);
  double seconds[kMaxRounds];
  uint64_t iterations = 0;
  if (rank == 0) {
    iterations = Iterations(bytes, round_seconds);
    const double last = Now() + kOvertime * max_rounds * round_seconds;
    while (rounds < max_rounds && (rounds < kMinRounds || Now() < last)) {
      seconds[rounds++] = Round(bytes, iterations);
    }
    Agree(0);
  } else {
    Answer(bytes);
  }
  const uint64_t all_wrong = Agree(wrong) + wrong;
  if (rank != 0) return;
  qsort(seconds, (size_t)rounds, sizeof seconds[0], Compare);
  printf(
      "{\"bytes\": %zu, \"rounds\": %d, \"iterations\": %llu, \"best_us\": %.4f, \"median_us\": "
      "%.4f, "
      "\"wrong\": %llu}\n",
      bytes, rounds, (unsigned long long)iterations, seconds[0] * 1e6, seconds[rounds / 2] * 1e6,
      (unsigned long long)all_wrong);
}

static void* Allocate(size_t bytes) {
  void* const memory = aligned_alloc(kPage, (bytes + kGuard + kPage - 1) / kPage * kPage);
  if (memory == NULL) {
    fprintf(stderr, "no memory for a buffer of %zu bytes\n", bytes);
    exit(1);
  }
  memset(memory, 0, bytes + kGuard);
  return memory;
}

int main(int argc, char** argv) {
  EndpointOpen(&argc, &argv);
  rank = EndpointRank();
  const int rounds = argc > 3 ? atoi(argv[1]) : 0;
  const double round_seconds = argc > 3 ? atof(argv[2]) / 1e3 : 0;
  int usable = rounds >= 1 && rounds <= kMaxRounds && round_seconds > 0 && EndpointRanks() == 2;
  size_t largest = 0;
  for (int i = 3; usable && i < argc; ++i) {
    const size_t bytes = strtoull(argv[i], NULL, 10);
    usable = bytes >= kMinBytes && bytes <= kMaxBytes;
    if (bytes > largest) largest = bytes;
  }
  if (!usable) {
    fprintf(
        stderr,
        "usage: %s ROUNDS ROUND_MS BYTES...    with two ranks; at most %d rounds, %d to %d bytes\n",
        argv[0], kMaxRounds, kMinBytes, kMaxBytes);
    return 2;
  }
  sent = Allocate(largest);
  received = Allocate(largest);
  if (rank == 0) printf("{\"library\": \"%s\", \"ranks\": %d}\n", EndpointName(), EndpointRanks());
  for (int i = 3; i < argc; ++i) Measure(strtoull(argv[i], NULL, 10), rounds, round_seconds);
  fflush(stdout);
  EndpointClose();
  return 0;
}
