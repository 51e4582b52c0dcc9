/* SPDX-License-Identifier: Apache-2.0
 *
 * For pingpong_test.py: a socket pair between two processes that EndpointOpen makes. FAULT in the
 * environment selects a fault in what rank FAULT_RANK receives in messages of at least 64 bytes:
 * "middle" changes a byte in the middle, "last" changes the last byte of every tenth message,
 * "stale" replaces all messages after the 20th by the one before, "beyond" writes one byte after
 * the message, "slow" delays all messages after the 300th by 5 ms. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "endpoint.h"

enum { kSmallest = 64, kLargest = 1 << 16, kFresh = 20, kFast = 300 };

static int rank;
static int ends[2];
static pid_t child;
static const char* fault = "";
static unsigned char before[kLargest];
static size_t messages;

void EndpointOpen(int* argc, char*** argv) {
  (void)argc;
  (void)argv;
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) exit(3);
  child = fork();
  if (child < 0) exit(3);
  rank = child == 0 ? 1 : 0;
  close(ends[1 - rank]);
  const char* const where = getenv("FAULT_RANK");
  if (getenv("FAULT") != NULL && where != NULL && atoi(where) == rank) fault = getenv("FAULT");
}

void EndpointClose(void) {
  if (rank == 0) waitpid(child, NULL, 0);
}

const char* EndpointName(void) { return "socket pair"; }
int EndpointRank(void) { return rank; }
int EndpointRanks(void) { return 2; }

void EndpointSend(const void* data, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t now = write(ends[rank], (const char*)data + done, bytes - done);
    if (now <= 0) exit(3);
    done += (size_t)now;
  }
}

void EndpointReceive(void* data, size_t bytes) {
  unsigned char* const to = data;
  for (size_t done = 0; done < bytes;) {
    const ssize_t now = read(ends[rank], to + done, bytes - done);
    if (now <= 0) exit(3);
    done += (size_t)now;
  }
  if (bytes < kSmallest || bytes > kLargest) return;
  ++messages;
  if (strcmp(fault, "middle") == 0) to[bytes / 2] ^= 1;
  if (strcmp(fault, "last") == 0 && messages % 10 == 0) to[bytes - 1] ^= 1;
  if (strcmp(fault, "beyond") == 0) to[bytes] ^= 1;
  if (strcmp(fault, "slow") == 0 && messages > kFast) {
    const struct timespec delay = {0, 5000000};
    nanosleep(&delay, NULL);
  }
  if (strcmp(fault, "stale") == 0) {
    unsigned char now[kLargest];
    memcpy(now, to, bytes);
    if (messages > kFresh) memcpy(to, before, bytes);
    memcpy(before, now, bytes);
  }
}
